create trigger queueproof_{fault} before update or delete on {table} for each row execute function queueproof.{fault}()
