"""No transaction is open across the call to the outside world.

Rule: only from an in-progress transaction of that worker on that job's row, or
one begun before the call and still open at its end. A transaction on the row that began after the call on a connection that
renews this job is its heartbeat, not a finding. Session locks and idle listeners are none either. Seen by looks at the server
(``OpenTransaction``), and on the wire: a claim of that row by that worker whose transaction had not ended when the call had.
Source: Q2, bug zoo B18.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.events import OpenTransaction
from harness.history.job import Call, Job, Notice
from harness.history.story import Story

NAME = "no_transaction_across_call"


@invariant(
    serves=("Q2", "V11"),
    broken_queue="call_inside_claim_transaction",
    mend=(
        "Commit the claim before the call, and write the result in a second, short transaction. Owner, token and "
        "lease keep the job in between, not the row's lock."
    ),
)
def no_transaction_across_call(story: Story) -> Iterator[Finding | Unknown]:
    """No transaction is open across a call."""
    told: set[int] = set()
    for job in story.jobs.values():
        for call in job.calls:
            if call.grant >= 0 and job.grants[call.grant].known_by < call.n:
                continue
            notice = _open_claim(job, call)
            if notice is not None:
                told.add(call.event.call)
                ended = "never" if notice.settled is None else f"only at {story.clock(notice.settled)}"
                sentence = (
                    f"worker {call.worker} must not keep a transaction open across its call for job {job.key!r} of"
                    f" {story.clock(call.n)}, because the outside world may take for ever; however, the transaction in which its"
                    f" backend {notice.event.pid} had claimed that row ended {ended}"
                )
                shown = (notice.n, call.n, *([notice.settled] if notice.settled is not None else []))
                yield Finding(NAME, sentence, shown, job.key, (call.worker,))
    for entry in story.open_transactions:
        seen = entry.what
        across = seen.older_than_call and seen.at_end
        on_row = seen.on_row and (seen.older_than_call or not _heartbeat(story, seen))
        if seen.call in told or not (across or on_row):
            continue
        told.add(seen.call)
        made = story.calls.get(seen.call)
        at = f" of {story.clock(made.n)}" if made is not None else ""
        what = "is at work on that very row" if on_row else "had begun before the call and was still open at its end"
        sentence = (
            f"worker {seen.worker} must not keep a transaction open across its call for job {seen.key!r}{at}, because the outside"
            f" world may take for ever; however, the transaction of its backend {seen.pid} {what}"
        )
        witness = (made.n, entry.n) if made is not None else (entry.n,)
        yield Finding(NAME, sentence, witness, seen.key, (seen.worker,))


def _open_claim(job: Job, call: Call) -> Notice | None:
    """A claim of this row by the caller that passed the wire before the call, and had not ended when the call had."""
    ended = call.answered if call.answered is not None else call.n
    committed = {transition.moved.xid for transition in job.transitions if transition.n < call.n}
    for notice in job.notices:
        mine = notice.event.change == "claim" and notice.event.worker == call.worker and notice.n < call.n
        if mine and notice.event.xid not in committed and (notice.settled is None or notice.settled > ended):
            return notice
    return None


def _heartbeat(story: Story, seen: OpenTransaction) -> bool:
    job = story.job(seen.key)
    return job is not None and any(n.event.change == "renew" and n.event.pid == seen.pid for n in job.notices)
