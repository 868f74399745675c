-- A hint that there is work. Sent after the enqueue's commit, never inside it: commits that notify queue up one behind the other.
notify queue_wake;
