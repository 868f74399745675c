drop sequence if exists queueproof.{fault}_raised
