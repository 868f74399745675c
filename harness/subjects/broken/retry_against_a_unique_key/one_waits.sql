create unique index one_waits on task (grp) where state = 'pending'
