drop schema if exists queueproof cascade
