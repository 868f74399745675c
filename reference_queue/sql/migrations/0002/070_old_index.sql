-- Its successor, queue_job_due, is there by now.
drop index concurrently if exists queue_job_candidate;
