create trigger queueproof_truth
after insert or update or delete on {table}
for each row execute function queueproof.record()
