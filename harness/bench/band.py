"""Does the drain band hold what it promises? Thousands of simulated outages, counted inside and outside of it.

The worked example (12/s, 0.8 s, 16 slots, 300 s of outage) for service times of several shapes, with retries, and with a slow class.
"""

import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from harness.capacity.band import CONFIDENCE, drain_band
from harness.capacity.drain import backlog_jobs, drain
from harness.capacity.draws import Service, poisson_arrivals, work
from harness.capacity.mix import SlowClass, Times, mix
from harness.capacity.replications import drain_times
from harness.capacity.retries import Retries
from harness.capacity.simulation import Outage
from harness.capacity.theory import capacity_per_second

ARRIVAL = Fraction(12)
SERVICE = Fraction(8, 10)
SLOTS = 16
OUTAGE = Fraction(300)
WARM_UP_SECONDS = 20.0  # 25 service times: steady before the outage
TOLERANCE = 0.02
CHUNK = 500  # replications at a time: fast enough, and 50 MB


@dataclass(frozen=True)
class Case:
    """One shape of work."""

    name: str
    service: Service
    retry: Fraction = Fraction(0)


MEAN = float(SERVICE)
CASES = (
    Case("exponential", Service(MEAN)),
    Case("fixed", Service(MEAN, "fixed")),
    Case("log-normal, cv² 4", Service(MEAN, "lognormal", 4.0)),
    Case("exponential, 10 % of attempts fail", Service(MEAN), Fraction(1, 10)),
    Case("fixed, 5 % of jobs take 8 s", Service(MEAN, "fixed", slow_share=0.05, slow_seconds=8.0)),
)


def run(outages: int = 2000, seed: int = 6) -> dict[str, Any]:
    """Coverage of the 95 % band, case by case; the aim is 0.95 ± 0.02 for each."""
    began = time.process_time()
    rng = np.random.default_rng(seed)
    cases = [_cover(case, outages, rng) for case in CASES]
    return {
        "name": "band",
        "seed": seed,
        "outages": outages,
        "aim": f"coverage {CONFIDENCE} ± {TOLERANCE} for each case",
        "met": all(case["met"] for case in cases),
        "cases": cases,
        "cpu_seconds": round(time.process_time() - began, 2),
    }


def _cover(case: Case, outages: int, rng: np.random.Generator) -> dict[str, Any]:
    spread = Fraction(case.service.spread)
    slow = None
    if case.service.slow_share:
        slow = SlowClass(Fraction(str(case.service.slow_share)), Fraction(str(case.service.slow_seconds)))
    job = Retries(case.retry).work(mix(Times(SERVICE, spread), slow))
    expected = drain(backlog_jobs(ARRIVAL, OUTAGE), capacity_per_second(SLOTS, job.mean_seconds), ARRIVAL)
    band = drain_band(expected, backlog_jobs(ARRIVAL, OUTAGE), work_cv2=job.cv2)
    if band is None:
        raise ValueError(f"{case.name} never drains")
    # Six standard deviations more than the fluid needs: a drain that outlasts its jobs would count as missing, and be seen.
    span = WARM_UP_SECONDS + float(OUTAGE) + band.mean_seconds + 6 * band.sd_seconds
    jobs = int(float(ARRIVAL) * span * 1.05)
    outage = Outage(WARM_UP_SECONDS, WARM_UP_SECONDS + float(OUTAGE))
    drained: list[float] = []
    while len(drained) < outages:
        size = (jobs, min(CHUNK, outages - len(drained)))
        dues = poisson_arrivals(rng, float(ARRIVAL), size)
        drained += drain_times(dues, work(rng, case.service, size, float(case.retry)), SLOTS, outage).tolist()
    inside = sum(band.holds(seconds) for seconds in drained) / outages
    return {
        "case": case.name,
        "coverage": round(inside, 4),
        "met": abs(inside - CONFIDENCE) <= TOLERANCE,
        "band_seconds": [round(limit, 1) for limit in band.limits],
        "band": "inverse Gaussian" if band.is_skewed else "normal",
        "theory": {"mean_seconds": round(band.mean_seconds, 2), "sd_seconds": round(band.sd_seconds, 2)},
        "simulated": {
            "mean_seconds": round(float(np.nanmean(drained)), 2),
            "sd_seconds": round(float(np.nanstd(drained)), 2),
            "not_drained": int(np.isnan(drained).sum()),
        },
    }
