"""Runs that never were: a simulated queue's path, told as a load run would have measured it."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from harness.capacity.draws import Service
from harness.capacity.simulation import Attempt as SimulatedAttempt
from harness.capacity.simulation import Job, Limiter, Outage, walk_attempts
from harness.capacity.sizing import size
from harness.load.measured import Measured, Phases, Steady
from harness.load.plan import read_plan
from harness.load.producing import Produced
from harness.load.schedule import due_times
from harness.load.table import Ended
from harness.load.trace import Attempt, Look

WORDS = {"arrival": "12/s", "service": "0.8s", "slots": "16", "outage": "120s", "time_scale": "10"}


MADE = {}  # runs by what they were made of: simulating one takes longer than judging it


@dataclasses.dataclass
class Imagined:
    """What differs from a sound run. ``sluggish`` grows from the middle of the drain on: slower than its own beginning."""

    words: dict
    seed: int = 7
    overhead: float = 0.004
    sluggish: float = 0.0
    start_up: float = 0.8
    extra: float = 4.0  # seconds of steady state after the drain
    failures: float = 0.0


def imagined_run(imagined):
    plan = read_plan(**imagined.words)
    scaled = plan.scaled()
    answer = size(scaled.question())
    steady_began, outage_began = 8.0, 14.0
    recovery = outage_began + scaled.outage_seconds
    first = recovery + imagined.start_up
    drain = float(answer.drain.seconds or 40)
    dues = due_times(plan, recovery + 3 * drain + 20, imagined.seed)
    rng = np.random.default_rng(imagined.seed)
    held = Service(scaled.service_seconds, plan.service_shape, float(plan.service_cv2)).draw(rng, (len(dues), 1))[:, 0]
    middle = int(np.searchsorted(dues, recovery))
    spent = held + imagined.overhead
    spent[middle:] += imagined.sluggish
    jobs = [Job(float(due), (SimulatedAttempt(float(seconds)),)) for due, seconds in zip(dues, spent, strict=True)]
    limiter = None if plan.limit_per_second is None else Limiter(scaled.rate(plan.limit_per_second))
    path = walk_attempts(jobs, plan.slots, outages=(Outage(outage_began, first),), limiter=limiter)
    drained = float(first + path.drain_seconds()) if path.drain_seconds() is not None else float(dues[-1])
    ended = float(min(drained + imagined.extra, float(dues[-1]) - 5))
    attempts = [Attempt(lost.job, 1, lost.claim, lost.claim, lost.at, None) for lost in path.killed] + [
        Attempt(
            job,
            1,
            claim + imagined.overhead / 2,
            start + imagined.overhead / 2,
            start + imagined.overhead / 2 + held[job],
            200,
        )
        for job, claim, start in zip(path.jobs, path.claims, path.starts, strict=True)
        if start + imagined.overhead / 2 + held[job] <= ended
    ]
    starts = np.full(len(dues), np.inf)
    for job, claim in zip(path.jobs, path.claims, strict=True):
        if claim + imagined.overhead / 2 <= ended:  # in service at the end counts as started
            starts[job] = claim + imagined.overhead / 2
    count = int(np.searchsorted(dues, ended))
    looks = tuple(look_at(at, dues, starts, attempts) for at in np.arange(0.0, ended, 0.25).tolist())
    samples = pd.DataFrame({
        "at": [look.at for look in looks],
        "phase": [phase_at(look.at, steady_began, outage_began, recovery) for look in looks],
        "loop_lag_ms": 1.0,
        "accounted": [float(look.due) for look in looks],
        "table_total": [float(look.due) for look in looks],
        "acknowledged_before": [float(max(look.due - 2, 0)) for look in looks],
        "acknowledged_after": [float(look.due) for look in looks],
        "table_oldest_unfinished": None,
        "table_running": 10.0,
        "trace_in_service": 9.5,
        "server_cores": 0.4,
        "flush_ms": 1.5,
    })  # fmt: skip
    produced = Produced(np.arange(count), dues[:count], dues[:count] + 0.002, dues[:count] + 0.004)
    return Measured(
        plan=plan,
        scaled=scaled,
        answer=answer,
        seed=imagined.seed,
        phases=Phases(steady_began, outage_began, recovery, drained + 0.2 if ended > drained + 2 else None, ended),
        steady=Steady(0, 5.0, 0.4, 1.0, moves=True),
        held_seconds=2.0,
        stuck_seconds=5.0,
        dues=dues,
        attempts=tuple(attempts),
        starts=starts,
        effects=np.where(np.isfinite(starts), 1, 0),
        produced=produced,
        ended=tuple(Ended(f"load-7-{n:08d}", "done", 1) for n in range(count)),
        deletes=False,
        samples=samples,
        looks=looks,
        strangers=0,
        worst_loop_lag=0.005,
        prefix="load-7-",
        server_version="18.4",
        server_source="made up",
        server_address="postgresql://nobody@nowhere:1/none",
        server_settings={"fsync": "on"},
        cores=2,
    )


def phase_at(at, steady, outage, recovery):
    return "warm-up" if at < steady else "steady" if at < outage else "outage" if at < recovery else "recovery"


def look_at(at, dues, starts, attempts):
    due = int(np.searchsorted(dues, at, side="right"))
    unstarted = np.flatnonzero(starts[:due] > at)
    age = at - float(dues[unstarted[0]]) if len(unstarted) else 0.0
    return Look(
        at,
        due,
        len(unstarted),
        age,
        10,
        due - len(unstarted),
        len(unstarted),
        int(unstarted[0]) if len(unstarted) else None,
        age,
    )


@pytest.fixture
def words():
    return dict(WORDS)


@pytest.fixture
def imagine(words):
    """Make a run that never was, from what differs: words of the plan, overhead, sluggishness, start-up, seed."""

    def make(plan=None, **differs):
        imagined = Imagined(words | (plan or {}), **differs)
        key = repr(imagined)
        if key not in MADE:
            MADE[key] = imagined_run(imagined)
        run = MADE[key]
        return dataclasses.replace(run, phases=dataclasses.replace(run.phases))

    return make
