-- Before the outside is called: from here on a successor must assume that the call may have happened.
-- Not once the lease is over: somebody may be taking the job over at this moment.
update queue_job
set phase = 'call_unknown', updated_at = now()
where id = %(id)s and version = %(version)s and worker_id = %(worker)s and state = 'running'
    and lease_until > clock_timestamp()
returning id;
