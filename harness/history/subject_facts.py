"""What of a subject goes into a history, so that it can be judged again without the subject's folder."""

from harness.contracts.subject import Subject
from harness.history.events import SubjectFacts


def facts_of(subject: Subject) -> SubjectFacts:
    """What judging needs to know of a subject."""
    jobs = subject.jobs
    return SubjectFacts(
        name=subject.name,
        guarantee=subject.guarantee,
        order=subject.order,
        sink=subject.sink,
        recovery=subject.recovery,
        restarts=subject.restarts,
        clock=subject.clock,
        lease_seconds=subject.lease_seconds,
        heartbeat_seconds=subject.heartbeat_seconds,
        takeover_within_seconds=subject.takeover_within_seconds,
        max_attempts=subject.max_attempts,
        has_owner=jobs.owner is not None,
        has_token=jobs.token is not None,
        token_increasing=jobs.token_increasing,
        has_lease=jobs.lease_until is not None,
        has_attempts=jobs.attempts is not None,
    )
