-- The commit gate asks what its own transaction did.
create index truth_xid on queueproof.truth (xid)
