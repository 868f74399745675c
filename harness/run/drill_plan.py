"""What a drill does, decided before it begins: which faults, whom they strike, when, and for how long. Same seed, same plan."""

import random
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from harness.contracts.fault import Fault
from harness.contracts.problem import BadInput
from harness.faults.target import Target, Victim

Faults = Mapping[str, Fault[Target]]
Someone = TypeVar("Someone", bound=Victim)

MOST_AT_ONCE = 3
LONGEST_HOLD_SECONDS = 5.0
LONGEST_GAP_SECONDS = 0.8
# What can still land while the others are on: what needs a call before what stops calls, the server last of all.
_ORDER = ("sink", "table", "clock", "connection", "worker", "server")


@dataclass(frozen=True)
class Step:
    """One fault of a drill. ``after_seconds`` since the one before it landed; ``victim`` counts workers from 0."""

    fault: Fault[Target]
    victim: int
    after_seconds: float


@dataclass(frozen=True)
class Plan:
    """One drill: the faults land one after the other, are all held for a while, and heal in reverse."""

    steps: tuple[Step, ...]
    hold_seconds: float
    seed: int

    @property
    def names(self) -> tuple[str, ...]:
        """The faults' names, in the order in which they land."""
        return tuple(step.fault.name for step in self.steps)

    @property
    def title(self) -> str:
        """Fit to be the name of a play."""
        return "drill " + " and ".join(self.names)

    def told(self) -> str:
        """The plan in one line."""
        steps = ", ".join(f"{s.fault.name} (worker {s.victim + 1}, after {s.after_seconds:.2f} s)" for s in self.steps)
        return f"{steps}; held {self.hold_seconds:.2f} s"


def _rank(fault: Fault[Target]) -> tuple[bool, int]:
    return not fault.needs_results, _ORDER.index(fault.strikes)


def planned(
    faults: Faults,
    names: Sequence[str],
    seed: int,
    workers: int,
    hold_seconds: float | None = None,
    *,
    lease_seconds: float | None = None,
) -> Plan:
    """The plan for these faults. A name that stands twice strikes two workers. Raises BadInput for strangers.

    Without ``hold_seconds`` they are held as long as the one that wants it longest.
    """
    strangers = [name for name in names if name not in faults]
    if strangers:
        raise BadInput(*(f"NAME {name!r}: no such fault; there are {', '.join(faults)}" for name in strangers))
    dice = random.Random(seed)
    order = dice.sample(range(workers), workers)
    chosen = sorted((faults[name] for name in names), key=_rank)
    steps = tuple(
        Step(fault, order[number % workers], 0.0 if number == 0 else round(dice.uniform(0, LONGEST_GAP_SECONDS), 2))
        for number, fault in enumerate(chosen)
    )
    wanted = max(max(fault.holds_seconds, fault.holds_leases * (lease_seconds or 0.0)) for fault in chosen)
    held = wanted if hold_seconds is None else hold_seconds
    return Plan(steps, held, seed)


def thrown(faults: Faults, seed: int, workers: int) -> Plan:
    """A plan that the seed alone decides: up to three faults that strike different things."""
    dice = random.Random(seed)
    kinds = dice.sample(_ORDER, dice.randint(1, MOST_AT_ONCE))
    names = [dice.choice([name for name, fault in faults.items() if fault.strikes == kind]) for kind in kinds]
    return planned(faults, names, seed, workers, round(dice.uniform(0, LONGEST_HOLD_SECONDS), 2))


def struck(step: Step, workers: Sequence[Someone], busy: Container[int] = ()) -> Someone:
    """The worker that a fault strikes: the one that is meant, or the next that can be.

    A fault before it may have killed that one, or have stopped it before it was connected. Whoever is ``busy`` comes first:
    one that holds no job has nothing to lose.
    """
    in_turn = [*workers[step.victim :], *workers[: step.victim]]
    living = [worker for worker in in_turn if worker.running]
    if step.fault.strikes == "connection":
        living = [worker for worker in living if any(session.open for session in worker.sessions)] or living
    return next((worker for worker in living if worker.number in busy), (living or in_turn)[0])


COMPOSED = (
    ("server_restarted_fast", "sink_down", "worker_paused", "worker_paused"),
    ("server_restarted_immediate", "worker_killed"),
    ("server_crashed", "sink_slow"),
    ("network_cut", "worker_killed"),
    ("backend_terminated_all", "sink_refuses"),
    ("held_row", "worker_paused", "connections_refused"),
)
"""Drills of more than one fault that are part of ``--all``, the ones that on-call people ask for."""
