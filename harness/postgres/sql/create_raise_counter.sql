create sequence queueproof.{fault}_raised
