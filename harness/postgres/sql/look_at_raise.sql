select is_called from queueproof.{fault}_raised
