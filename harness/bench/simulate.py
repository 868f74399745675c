"""How fast our simulation is beside SimPy and Ciw: jobs per CPU-second, the same draws, alternating in one run."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.bench.rivals import ciw_claims, simpy_claims
from harness.capacity.draws import Service, poisson_arrivals
from harness.capacity.replications import drain_times
from harness.capacity.simulation import Outage, walk

AIM_OVER_SIMPY = 30
AIM_OVER_CIW = 200
JOBS = 12_000  # of the worked example: 20 s of warm-up, 300 s of outage, the drain, and some steady state
SLOTS = 16
OUTAGE = Outage(20.0, 320.0)
SAME_SECONDS = 1e-6  # rivals add up gaps between arrivals, which rounds


def run(rounds: int = 3, replications: int = 200, seed: int = 6) -> dict[str, Any]:
    """One path with a heap is what is compared; the vectorised run is shown beside it. All must drain at the same instant."""
    rng = np.random.default_rng(seed)
    arrivals = poisson_arrivals(rng, 12.0, (JOBS, replications))
    durations = Service(0.8).draw(rng, arrivals.shape)
    dues, times = arrivals[:, 0].tolist(), durations[:, 0].tolist()
    speeds: dict[str, list[float]] = {"path": [], "vectorised": [], "simpy": [], "ciw": []}
    answers: dict[str, float] = {}
    for _ in range(rounds):
        speeds["simpy"].append(_speed("simpy", answers, JOBS, lambda: _drain(simpy_claims, dues, times)))
        speeds["ciw"].append(_speed("ciw", answers, JOBS, lambda: _drain(ciw_claims, dues, times)))
        for _ in range(5):
            speeds["path"].append(_speed("path", answers, JOBS, lambda: _path(dues, times)))
        speeds["vectorised"].append(
            _speed("vectorised", answers, JOBS * replications, lambda: float(_many(arrivals, durations)[0]))
        )
    medians = {name: statistics.median(all_of_it) for name, all_of_it in speeds.items()}
    over_simpy, over_ciw = medians["path"] / medians["simpy"], medians["path"] / medians["ciw"]
    same = max(answers.values()) - min(answers.values()) < SAME_SECONDS
    return {
        "name": "simulate",
        "seed": seed,
        "jobs": JOBS,
        "aim": f"one path at least {AIM_OVER_SIMPY} × SimPy and {AIM_OVER_CIW} × Ciw, with the same drain",
        "met": same and over_simpy >= AIM_OVER_SIMPY and over_ciw >= AIM_OVER_CIW,
        "over_simpy": round(over_simpy, 1),
        "over_ciw": round(over_ciw, 1),
        "vectorised_over_simpy": round(medians["vectorised"] / medians["simpy"], 1),
        "vectorised_over_ciw": round(medians["vectorised"] / medians["ciw"], 1),
        "jobs_per_cpu_second": {name: round(speed) for name, speed in medians.items()},
        "drain_seconds": {name: round(seconds, 6) for name, seconds in answers.items()},
        "same_drain": same,
    }


def _speed(name: str, answers: dict[str, float], jobs: int, work: Callable[[], float]) -> float:
    began = time.process_time()
    answers[name] = work()
    return jobs / (time.process_time() - began)


def _path(dues: list[float], times: list[float]) -> float:
    return walk(dues, times, SLOTS, outages=(OUTAGE,)).drain_seconds() or float("nan")


def _many(arrivals: Any, durations: Any) -> Any:
    return drain_times(arrivals, durations, SLOTS, OUTAGE)


def _drain(rival: Callable[..., list[float]], dues: list[float], times: list[float]) -> float:
    claims = rival(dues, times, SLOTS, OUTAGE)
    after = OUTAGE.end_seconds
    # FIFO: the backlog is gone when a job is claimed before the next one is due.
    pairs = zip(claims, dues[1:], strict=False)
    return next(claim for claim, following in pairs if claim >= after and following > claim) - after
