-- The subject's table as the mapping reads it: the final snapshot that truth must agree with.
select {expressions} from {reading_from}
