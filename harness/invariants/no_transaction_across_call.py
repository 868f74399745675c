"""No transaction is open across the call to the outside world.

Rule: DESIGN "Judging", transaction across the call: only from an in-progress transaction of that worker on that job's row, or
one begun before the call and still open at its end. A transaction on the row that began after the call on a connection that
renews this job is its heartbeat, not a finding. Session locks and idle listeners are none either. Source: Q2, bug zoo B18.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.events import OpenTransaction
from harness.history.story import Story

NAME = "no_transaction_across_call"


@invariant(serves=("Q2", "V11"), broken_queue="call_inside_transaction")
def no_transaction_across_call(story: Story) -> Iterator[Finding | Unknown]:
    """No transaction is open across a call."""
    told: set[int] = set()
    for entry in story.open_transactions:
        seen = entry.what
        across = seen.older_than_call and seen.at_end
        on_row = seen.on_row and (seen.older_than_call or not _heartbeat(story, seen))
        if seen.call in told or not (across or on_row):
            continue
        told.add(seen.call)
        call = story.calls.get(seen.call)
        at = f" of {story.clock(call.n)}" if call is not None else ""
        what = "is at work on that very row" if on_row else "had begun before the call and was still open at its end"
        sentence = (
            f"worker {seen.worker} must not keep a transaction open across its call for job {seen.key!r}{at}, because the outside"
            f" world may take for ever; however, the transaction of its backend {seen.pid} {what}"
        )
        witness = (call.n, entry.n) if call is not None else (entry.n,)
        yield Finding(NAME, sentence, witness, seen.key, (seen.worker,))


def _heartbeat(story: Story, seen: OpenTransaction) -> bool:
    job = story.job(seen.key)
    return job is not None and any(n.event.change == "renew" and n.event.pid == seen.pid for n in job.notices)
