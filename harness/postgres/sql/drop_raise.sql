drop function if exists queueproof.{fault}() cascade
