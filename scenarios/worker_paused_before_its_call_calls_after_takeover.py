"""Paused between its claim and its call; the call would come after the takeover."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.late import late_call_or_abstained
from harness.history.facts.takeovers import paused_past_lease, taken_over
from harness.invariants.calls_follow_grants import calls_follow_grants
from harness.invariants.effect_once import effect_once
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_stale_write import no_stale_write
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS, TAKES_OVER


@scenario(
    serves=["V5", "V9", "Q3", "Q9"],
    must_hold=[effect_once, calls_follow_grants, no_stale_write, no_lost_job],
    must_happen=[paused_past_lease, taken_over, late_call_or_abstained],
    needs=[GRANTS, TAKES_OVER],
    record="stale-token",
)
async def worker_paused_before_its_call_calls_after_takeover(lab: Lab) -> None:
    """A worker is stopped between its claim and its external call, and goes on after another has taken over.

    What happens
        The claim is durable, its reply is withheld and the process is stopped. Its lease ends, a second worker takes over,
        calls, and is held before its result. The first worker is given its reply and resumed: it may call now.

    Why it matters
        No database can fence a call that goes elsewhere. Either the worker looks at its lease before it calls, or the
        outside world recognises the operation key or the fencing token.

    What must hold
        One effect for a queue that promises effectively-once; no write of the first worker is accepted.
    """
    (job,) = await lab.enqueue(1)
    first = lab.worker(stops_at=Point.COMMIT_LOST)
    await first.start()
    await first.reached(Point.COMMIT_LOST, job)
    await lab.superseded(first, job, release=Point.COMMIT_LOST)
    await lab.drained()
