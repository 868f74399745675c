create trigger queueproof_snapshot
before insert or update or delete on {table}
for each statement execute function queueproof.hold_at_snapshot()
