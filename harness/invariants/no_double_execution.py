"""A job is called again only with an excuse of its own; a keyed sink must not hide a double execution.

Rule: calls are judged, not effects, whatever the guarantee. Excused one by one: between two
calls the history has, for that job, the lease's end by truth, the worker's death, a lost claim or result reply, a non-2xx or
broken sink reply, a release at shutdown, a server restart, or an operator's requeue. ``is_unexcused_duplicate`` asks the
same of a play that is still going on, so that a duplicate stops it at once (V9).
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.events import Called, Entry, Moved
from harness.history.excuses import Repeat, repeats
from harness.history.job import Job
from harness.history.story import Story

NAME = "no_double_execution"


@invariant(
    serves=("Q3", "V2", "V4", "V5", "V9"),
    broken_queue="double_execution_hidden_by_keyed_sink",
    mend=(
        "Let the claim be an UPDATE that sets owner and lease: the locks of a bare `select ... for update` end with "
        "its transaction. Let the handler send one request per grant, with no hedged second one."
    ),
)
def no_double_execution(story: Story) -> Iterator[Finding | Unknown]:
    """No job is executed twice without an excuse."""
    for job in story.jobs.values():
        if len(job.calls) > 1:
            for repeat in repeats(story, job):
                if repeat.excuse is None:
                    yield _finding(story, job, repeat)


def is_unexcused_duplicate(story: Story, entry: Entry) -> Finding | None:
    """The duplicate that nothing excuses, of the job that this entry is about, in a play that may still be going on.

    None as long as truth has not shown every claim of the job that passed the wire: its excuse may lie in what is unread. So
    ask after each ``Called`` and each ``Moved``; any other entry is about nothing.
    """
    event = entry.what
    if not isinstance(event, Called | Moved) or event.key is None:
        return None
    job = story.job(event.key)
    if job is None or len(job.calls) < 2 or story.unread_claim(job):
        return None
    if any(call.grant < 0 for call in job.calls):
        return None
    return next((_finding(story, job, r) for r in repeats(story, job) if r.excuse is None), None)


def _finding(story: Story, job: Job, repeat: Repeat) -> Finding:
    before, call = repeat.before, repeat.call
    sentence = (
        f"job {job.key!r} was executed twice, because worker {before.worker} called for it at {story.clock(before.n)} and"
        f" worker {call.worker} again at {story.clock(call.n)}; however, nothing in between excuses a repeat: no lease's end, no"
        " death, no lost or failed reply that an earlier repeat has not used up"
    )
    grants = [job.grants[c.grant].n for c in (before, call) if c.grant >= 0]
    witness = tuple(dict.fromkeys((*grants, before.n, call.n)))
    return Finding(NAME, sentence, witness, job.key, tuple(sorted({before.worker, call.worker})))
