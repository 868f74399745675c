"""What a scenario may need of a subject, each with the sentence that says why a subject lacks it."""

from harness.contracts.scenario import Need
from harness.contracts.subject import State, Subject
from harness.postgres import clock


def _grants(subject: Subject, learned: frozenset[str]) -> str | None:
    if "claim" in learned:
        return None
    return "its claim changes no row that the mapping can see, so it grants nothing that could be stopped or taken over"


def _takes_over(subject: Subject, learned: frozenset[str]) -> str | None:
    if subject.takeover_within_seconds is not None:
        return None
    return 'it never takes over the job of a dead worker (takeover_within = "never")'


def _lease(subject: Subject, learned: frozenset[str]) -> str | None:
    return None if subject.lease_seconds is not None else "declare subject.lease to have this judged"


def _takes_its_lease(subject: Subject, learned: frozenset[str]) -> str | None:
    if any("{lease}" in text for text in (*subject.worker_command, *subject.worker_env.values())):
        return None
    return (
        "its worker is not told how long a lease is, so none of minutes can be tried;"
        ' say so under subject.worker.env, such as LEASE = "{lease}"'
    )


def _renews(subject: Subject, learned: frozenset[str]) -> str | None:
    return None if "renew" in learned else "no renewal was seen while the probe's handler ran"


def _results(subject: Subject, learned: frozenset[str]) -> str | None:
    if learned & {"complete", "fail", "release"}:
        return None
    return "no statement of its own was seen to write a result"


def _failures(subject: Subject, learned: frozenset[str]) -> str | None:
    if learned & {"fail", "release"}:
        return None
    return "no statement of its own was seen to write a failure"


def _attempts_bound(subject: Subject, learned: frozenset[str]) -> str | None:
    return None if subject.max_attempts is not None else "declare subject.max_attempts to have this judged"


def _clock(subject: Subject, learned: frozenset[str]) -> str | None:
    return None if clock.library() is not None else "a worker's clock can be skewed on Linux only"


def _movable(subject: Subject, learned: frozenset[str]) -> str | None:
    return None if clock.library() is not None else "the server's clock can be moved on Linux only"


def _groups(subject: Subject, learned: frozenset[str]) -> str | None:
    if subject.jobs.group is None:
        return "declare subject.jobs.group to have this judged, if it runs the jobs of a group one at a time"
    if subject.enqueue_sql is None or "%(group)s" not in subject.enqueue_sql:
        return "use %(group)s in subject.enqueue.sql to have this judged"
    return None


def _enqueues_by_sql(subject: Subject, learned: frozenset[str]) -> str | None:
    if subject.enqueue_sql is not None:
        return None
    return "its enqueue is a program of its own, whose transaction cannot be kept open"


def _keeps_finished(subject: Subject, learned: frozenset[str]) -> str | None:
    if subject.jobs.deleted != State.DONE:
        return None
    return "it deletes what is finished, so there is no finished row to lock"


def _priorities(subject: Subject, learned: frozenset[str]) -> str | None:
    if subject.order != "priority":
        return 'it promises no order by priority; declare subject.order = "priority" to have this judged'
    if subject.enqueue_sql is None or "%(priority)s" not in subject.enqueue_sql:
        return "use %(priority)s in subject.enqueue.sql to have this judged"
    return None


GRANTS = Need(_grants)
TAKES_OVER = Need(_takes_over)
LEASE = Need(_lease)
TAKES_ITS_LEASE = Need(_takes_its_lease)
RENEWS = Need(_renews)
WRITES_RESULTS = Need(_results)
WRITES_FAILURES = Need(_failures)
BOUNDS_ATTEMPTS = Need(_attempts_bound)
SKEWED_CLOCK = Need(_clock)
MOVABLE_CLOCK = Need(_movable)
GROUPS = Need(_groups)
PRIORITIES = Need(_priorities)
ENQUEUES_BY_SQL = Need(_enqueues_by_sql)
KEEPS_FINISHED = Need(_keeps_finished)
