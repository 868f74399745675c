-- Where the audit and the jobs disagree; no row at any quiet moment. Only a grant and an operator's move raise the version,
-- each by one; each row of the audit begins in the state that the one before it ended in; the last one is the job's.
with step as (
    select job_id, id, from_state, to_state, version,
        lag(to_state) over job as previous_state,
        lag(version) over job as previous_version,
        lead(id) over job is null as is_last
    from queue_audit
    window job as (partition by job_id order by id)
)
select coalesce(job.id, step.job_id) as job_id, job.state, job.version, step.id as audit_id, step.to_state, step.version as audit_version,
    case
        when step.id is null then 'a job without an audit'
        when step.is_last and (step.to_state <> job.state or step.version <> job.version) then 'the last audit row is not the job''s state'
        when step.from_state is distinct from step.previous_state then 'an audit row does not begin where the one before it ended'
        else 'a version was skipped or went back'
    end as disagreement
from queue_job as job
left join step on step.job_id = job.id
where step.id is null
    or (step.is_last and (step.to_state <> job.state or step.version <> job.version))
    or step.from_state is distinct from step.previous_state
    or step.version - coalesce(step.previous_version, 0) not in (0, 1);
