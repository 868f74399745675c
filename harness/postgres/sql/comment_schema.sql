-- So that a later run, or doctor, can tell our schema from somebody's own of that name.
comment on schema queueproof is 'made by queueproof for one run, and dropped at its end'
