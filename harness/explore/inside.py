"""An exploration inside a scenario: on the scenario's own ground, told in its own play.

What held is recorded as an observation with its coverage. A counterexample's events are recorded once more as the play's
own, so that the play is judged by them as if it had been staged that way.
"""

from typing import TYPE_CHECKING

import msgspec

from harness.contracts.problem import SubjectFailed
from harness.contracts.scenario import Need
from harness.explore.case import Case
from harness.explore.run import Exploration, Options
from harness.history.events import Began, Ended, Entry
from harness.history.recorder import Recorder

if TYPE_CHECKING:
    from harness.lab.lab import Lab

ALL_ORDERS = "every order of two workers' steps was run"
ORDERS_WITH_A_TAKEOVER = "every order with the end of a lease was run"
BUDGET_SECONDS = 55.0

can_be_stepped = Need(
    lambda subject, _: (
        None
        if subject.poll_seconds is not None
        else "declare subject.poll to have this judged: how long an idle worker waits before it looks again"
    )
)


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
    if explored.tally.complete:
        lab.saw(fact, f"{case.told()}: {explored.coverage()}")
    else:
        lab.saw("not every order was run", f"{case.told()}: {explored.coverage()}")
