create constraint trigger queueproof_commit
after insert or update or delete on {table}
deferrable initially deferred
for each row execute function queueproof.hold_at_commit()
