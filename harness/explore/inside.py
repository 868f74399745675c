"""An exploration inside a scenario: on the scenario's own ground, told in its own play.

What held is recorded as an observation with its coverage. A counterexample's events are recorded once more as the play's
own, so that the play is judged by them as if it had been staged that way.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from harness.contracts.invariant import Invariant
from harness.contracts.problem import SubjectFailed
from harness.contracts.scenario import Need
from harness.explore.case import THE_END_OF_A_LEASE, Case, why_no_lease_ends
from harness.explore.run import Exploration, Options
from harness.history.events import Began, Ended, Entry, LeftOut
from harness.history.recorder import Recorder
from harness.invariants.asks_before_repeating import asks_before_repeating
from harness.invariants.keeps_what_it_works_on import keeps_what_it_works_on
from harness.invariants.no_stale_write import no_stale_write
from harness.invariants.stops_after_losing import stops_after_losing
from harness.invariants.token_fences import token_fences

if TYPE_CHECKING:
    from harness.lab.lab import Lab

ALL_ORDERS = "every order of two workers' steps was run"
ORDERS_WITH_A_TAKEOVER = "every order with the end of a lease was run"
BUDGET_SECONDS = 55.0

# With one job, and without a kill or a lost reply, a job is rightly granted again only when its lease has ended.
NEED_A_TAKEOVER: tuple[Invariant[Any], ...] = (
    no_stale_write,
    stops_after_losing,
    token_fences,
    keeps_what_it_works_on,
    asks_before_repeating,
)

can_be_stepped = Need(
    lambda subject, _: (
        None
        if subject.poll_seconds is not None
        else "declare subject.poll to have this judged: how long an idle worker waits before it looks again"
    )
)


def can_end_leases(lab: "Lab") -> bool:
    """Whether orders with the end of a lease can be run. A lease that cannot be ended by a write is recorded as left out."""
    why_not = why_no_lease_ends(lab.subject)
    if why_not is not None:
        _leave_out(lab, THE_END_OF_A_LEASE, why_not)
    return bool(lab.subject.lease_seconds) and why_not is None


def _leave_out(lab: "Lab", what: str, why: str) -> None:
    lab.recorder.record(LeftOut(what, why, tuple(each.name for each in NEED_A_TAKEOVER)))


async def explore_inside(lab: "Lab", fact: str, case: Case, *, budget_seconds: float = BUDGET_SECONDS) -> None:
    """Explore one case to its end, or record what broke. ``fact`` is recorded only if every order was run and held."""
    await lab.watch.stop()  # its database is the exploration's meanwhile, which leaves nothing behind in it
    with Recorder(lab.ground.folder / "schedules.jsonl") as recorder:
        exploration = Exploration(lab.ground, recorder, Options(budget_seconds, cases=(case,), in_order=1.0))
        (explored,) = await exploration.run(lambda _: None)
    found = explored.violation
    if found is not None:
        for entry in found.entries:
            assert isinstance(entry, Entry)
            if not isinstance(entry.what, Began | Ended):
                lab.recorder.record(msgspec.structs.replace(entry.what))
        lab.saw("a schedule that breaks it", f"{found.schedule} ({case.told()}); again: {found.replay}")
        raise SubjectFailed(f"broken by the schedule {found.schedule}: {'; '.join(found.sentences)}")
    covered = f"{case.told()}: {explored.coverage()}"
    why_not = why_no_lease_ends(lab.subject)
    if why_not is not None:
        covered += f"; {THE_END_OF_A_LEASE} was left out, because {why_not}"
    if case.expiries and not explored.tally.complete:
        _leave_out(lab, f"a part of the orders with {THE_END_OF_A_LEASE}", f"their {budget_seconds:g} s were over")
    lab.saw(fact if explored.tally.complete else "not every order was run", covered)
