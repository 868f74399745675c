"""The recursion: exactly SimPy, close to fluid, and exact about kills, retries and limits."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.bench.rivals import ciw_claims, simpy_claims
from harness.capacity.drain import drain
from harness.capacity.draws import Service, even_arrivals, jobs, poisson_arrivals, work
from harness.capacity.replications import drain_times
from harness.capacity.retries import Backoff
from harness.capacity.simulation import Attempt, Job, Killed, Limiter, Outage, walk, walk_attempts

DYADIC = 2**20  # multiples of a power of two add up exactly, so that equal means equal
OUTAGE = Outage(20.0, 80.0)


def drawn(seed: int, count: int = 1500, shape: str = "exponential") -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    dues = poisson_arrivals(rng, 12.0, (count, 1))[:, 0]
    durations = Service(0.8, shape, 4.0).draw(rng, (count, 1))[:, 0]  # type: ignore[arg-type]
    return (np.round(dues * DYADIC) / DYADIC).tolist(), (np.round(durations * DYADIC) / DYADIC).tolist()


@pytest.mark.parametrize("shape", ["exponential", "fixed", "lognormal"])
@pytest.mark.parametrize("outage", [None, OUTAGE], ids=["calm", "outage"])
def test_every_start_is_exactly_that_of_simpy(shape: str, outage: Outage | None) -> None:
    dues, durations = drawn(1, shape=shape)
    path = walk(dues, durations, 16, outages=(outage,) if outage else ())
    starts = dict(zip(path.jobs, path.starts, strict=True))
    assert [starts[n] for n in range(len(dues))] == simpy_claims(dues, durations, 16, outage)


@pytest.mark.parametrize("outage", [None, OUTAGE], ids=["calm", "outage"])
def test_every_start_is_that_of_ciw(outage: Outage | None) -> None:
    dues, durations = drawn(2, count=1200)
    path = walk(dues, durations, 16, outages=(outage,) if outage else ())
    starts = dict(zip(path.jobs, path.starts, strict=True))
    assert [starts[n] for n in range(len(dues))] == pytest.approx(ciw_claims(dues, durations, 16, outage), abs=1e-6)


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), min_size=1, max_size=60),
    st.integers(1, 5),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_any_small_queue_is_exactly_that_of_simpy_and_of_the_general_walk(
    line: list[tuple[int, int]], slots: int, start: int, length: int
) -> None:
    # Halves keep an outage off the instants of arrivals and completions, where SimPy's order of events would be a convention.
    gaps, durations = [float(gap) for gap, _ in line], [float(seconds) for _, seconds in line]
    dues = list(itertools.accumulate(gaps))
    outage = Outage(start + 0.5, start + length + 0.5)
    path = walk(dues, durations, slots, outages=(outage,))
    starts = dict(zip(path.jobs, path.starts, strict=True))
    assert [starts[n] for n in range(len(dues))] == simpy_claims(dues, durations, slots, outage)
    general = walk_attempts(
        [Job(due, (Attempt(seconds),)) for due, seconds in zip(dues, durations, strict=True)], slots, outages=(outage,)
    )
    assert general == path


@given(
    st.integers(1, 20),
    st.fractions(min_value="0.25", max_value=5, max_denominator=8),
    st.fractions(min_value="1.125", max_value=3, max_denominator=8),
    st.integers(5, 60),
)
def test_with_no_spread_it_stays_within_a_round_of_the_fluid(
    slots: int, service: Fraction, surplus: Fraction, outage: int
) -> None:
    capacity = slots / service
    arrival = capacity / surplus
    fluid = drain(arrival * outage, capacity, arrival).seconds
    assert fluid is not None
    count = math.ceil(arrival * (outage + fluid * 2 + 20 * service + 10))
    dues = even_arrivals(float(arrival), (count, 1))[:, 0].tolist()
    path = walk(dues, [float(service)] * count, slots, outages=(Outage(0.0, float(outage)),))
    # c/μ is one service time; while it lasts, arrivals stretch the difference by μ/d.
    seconds = path.drain_seconds()
    assert seconds is not None
    assert abs(seconds - fluid) <= (slots / capacity + 1 / arrival) * capacity / (capacity - arrival)


def test_in_flight_jobs_are_killed_and_run_again_first() -> None:
    path = walk([0.0, 1.0, 2.0], [10.0, 1.0, 1.0], 1, outages=(Outage(5.0, 8.0),))
    assert path.jobs == [0, 1, 2]
    assert path.claims == [8.0, 18.0, 19.0]
    assert path.killed == (Killed(0, 0.0, 5.0),)


def test_a_second_outage_kills_again() -> None:
    path = walk([0.0], [10.0], 1, outages=(Outage(5.0, 8.0), Outage(9.0, 10.0)))
    assert path.claims == [10.0]
    assert path.killed == (Killed(0, 0.0, 5.0), Killed(0, 8.0, 9.0))


def test_a_job_that_ends_with_the_outage_is_done() -> None:
    assert walk([0.0], [5.0], 1, outages=(Outage(5.0, 8.0),)).killed == ()


def test_overhead_holds_the_slot_too() -> None:
    assert walk([0.0, 0.0], [1.0, 1.0], 1, overhead_seconds=0.25).claims == [0.0, 1.25]


def test_the_drain_ends_when_nothing_due_is_left_unclaimed() -> None:
    path = walk([0.0, 1.0, 2.0, 30.0], [2.0] * 4, 1, outages=(Outage(0.0, 10.0),))
    assert path.claims == [10.0, 12.0, 14.0, 30.0]
    assert path.drain_seconds() == 4.0
    assert path.oldest_age_at(5.0) == 5.0
    assert path.oldest_age_at(10.0) == 9.0
    assert path.oldest_age_at(13.0) == 11.0
    assert path.oldest_age_at(14.0) == 0.0
    assert path.oldest_age_at(31.0) == 0.0


def test_a_path_that_ends_with_its_backlog_says_nothing_about_the_drain() -> None:
    assert walk([0.0, 1.0], [5.0, 5.0], 1, outages=(Outage(0.0, 10.0),)).drain_seconds() is None


def test_nothing_due_at_recovery_is_no_drain() -> None:
    assert walk([0.0, 50.0, 51.0], [1.0] * 3, 1, outages=(Outage(10.0, 20.0),)).drain_seconds() == 0


def test_a_running_job_is_not_old_until_it_is_killed() -> None:
    path = walk([0.0, 30.0, 31.0], [10.0] * 3, 2, outages=(Outage(5.0, 20.0),))
    assert path.oldest_age_at(4.0) == 0.0
    assert path.oldest_age_at(6.0) == 6.0


def test_oldest_age_follows_the_line() -> None:
    rng = np.random.default_rng(5)
    dues = poisson_arrivals(rng, 12.0, (11_000, 20))
    durations = Service(0.8).draw(rng, dues.shape)
    outage = Outage(20.0, 320.0)
    paths = [walk(dues[:, r].tolist(), durations[:, r].tolist(), 16, outages=(outage,)) for r in range(20)]
    ages = [np.mean([path.oldest_age_at(320.0 + u) for path in paths]) for u in (0, 112.5, 225, 337.5)]
    assert ages == pytest.approx([300, 225, 150, 75], abs=6)


def test_a_retry_waits_for_its_backoff_without_a_slot() -> None:
    line = [Job(0.0, (Attempt(1.0, 5.0), Attempt(1.0))), Job(0.5, (Attempt(2.0),))]
    path = walk_attempts(line, 1)
    assert list(zip(path.jobs, path.dues, path.claims, strict=True)) == [(0, 0.0, 0.0), (1, 0.5, 1.0), (0, 6.0, 6.0)]


def test_a_retry_is_due_behind_what_was_due_before_it() -> None:
    line = [Job(0.0, (Attempt(1.0, 0.0), Attempt(1.0))), Job(0.0, (Attempt(1.0),)), Job(2.0, (Attempt(1.0),))]
    assert walk_attempts(line, 1).jobs == [0, 1, 0, 2]


def test_a_killed_attempt_has_not_failed() -> None:
    line = [Job(0.0, (Attempt(4.0, 1.0), Attempt(1.0)))]
    path = walk_attempts(line, 1, outages=(Outage(2.0, 10.0),))
    assert path.claims == [10.0, 15.0]
    assert path.killed == (Killed(0, 0.0, 2.0),)


def test_retries_with_backoff_drain_as_theory_says() -> None:
    rng = np.random.default_rng(8)
    drains = []
    for _ in range(4):
        dues = poisson_arrivals(rng, 12.0, (13_000, 1))[:, 0]
        line = jobs(rng, dues.tolist(), Service(0.8), failure_share=0.1, backoff=Backoff(), jitter=0.5)
        drains.append(walk_attempts(line, 16, outages=(Outage(20.0, 320.0),)).drain_seconds())
    assert np.mean(drains) == pytest.approx(600, abs=3 * 24.5 / math.sqrt(4))  # type: ignore[arg-type]


def test_an_even_limiter_spaces_the_calls_and_blocks_the_slots() -> None:
    path = walk([0.0] * 4, [0.1] * 4, 2, limiter=Limiter(2.0))
    assert path.starts == [0.0, 0.5, 1.0, 1.5]
    assert path.claims == [0.0, 0.0, 0.1, 0.6]
    assert path.blocked_seconds() == pytest.approx(0.5 + 0.9 + 0.9)


def test_a_token_bucket_lets_its_burst_pass() -> None:
    assert walk([0.0] * 5, [0.1] * 5, 5, limiter=Limiter(2.0, burst=3)).starts == [0.0, 0.0, 0.0, 0.5, 1.0]
    refilled = walk([0.0] * 3 + [10.0] * 4, [0.1] * 7, 7, limiter=Limiter(2.0, burst=3)).starts
    assert refilled == [0.0, 0.0, 0.0, 10.0, 10.0, 10.0, 10.5]


def test_a_call_that_never_went_out_used_no_token() -> None:
    path = walk([0.0, 0.0], [0.1, 0.1], 2, limiter=Limiter(0.5), outages=(Outage(1.0, 1.5),))
    assert path.starts == [0.0, 2.0]
    assert path.claims == [0.0, 1.5]


def test_a_limit_stretches_the_drain() -> None:
    rng = np.random.default_rng(3)
    dues = poisson_arrivals(rng, 12.0, (21_000, 1))[:, 0].tolist()
    durations = Service(0.8).draw(rng, (21_000, 1))[:, 0].tolist()
    outage = Outage(20.0, 320.0)
    seconds = walk(dues, durations, 16, outages=(outage,), limiter=Limiter(15.0)).drain_seconds()
    assert seconds == pytest.approx(1200, abs=3 * 44.7)
    many = drain_times(np.array(dues)[:, None], np.array(durations)[:, None], 16, outage, limit_per_second=15.0)
    assert many[0] == pytest.approx(seconds, abs=2)  # the one waits inside the slot, the other in front of it


@pytest.mark.parametrize("shape", ["exponential", "fixed", "lognormal"])
def test_columns_are_paths(shape: str) -> None:
    rng = np.random.default_rng(4)
    dues = poisson_arrivals(rng, 12.0, (4000, 12))
    durations = work(rng, Service(0.8, shape, 4.0, slow_share=0.01, slow_seconds=5.0), dues.shape, 0.1)  # type: ignore[arg-type]
    many = drain_times(dues, durations, 16, OUTAGE)
    each = [
        walk(dues[:, r].tolist(), durations[:, r].tolist(), 16, outages=(OUTAGE,)).drain_seconds() for r in range(12)
    ]
    assert np.isnan(many).sum() < 6  # most do drain
    assert [None if np.isnan(seconds) else seconds for seconds in many.tolist()] == each


def test_columns_that_do_not_drain_are_nan_and_those_without_backlog_zero() -> None:
    dues = np.array([[0.0, 0.0], [1.0, 90.0], [2.0, 91.0]])
    many = drain_times(dues, np.full(dues.shape, 5.0), 1, Outage(10.0, 80.0))
    assert np.isnan(drain_times(dues[:, :1], np.full((3, 1), 50.0), 1, Outage(10.0, 80.0))[0])
    assert many[1] == 0


@pytest.mark.parametrize(
    ("dues", "slots", "outages", "why"),
    [
        ([1.0, 0.0], 1, (), "sorted"),
        ([0.0], 0, (), "without slots"),
        ([0.0], 1, (Outage(2.0, 1.0),), "outages"),
        ([0.0], 1, (Outage(2.0, 5.0), Outage(4.0, 6.0)), "outages"),
    ],
)
def test_nonsense_is_refused(dues: list[float], slots: int, outages: tuple[Outage, ...], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        walk(dues, [1.0] * len(dues), slots, outages=outages)
    with pytest.raises(ValueError, match=why):
        walk_attempts([Job(due, (Attempt(1.0),)) for due in dues], slots, outages=outages)


def test_as_many_durations_as_jobs() -> None:
    with pytest.raises(ValueError, match="durations"):
        walk([0.0], [], 1)


def test_an_empty_run_is_an_empty_path() -> None:
    assert walk([], [], 3).claims == []
    assert walk_attempts([], 3, outages=(Outage(0.0, 1.0),)).drain_seconds() is None


def test_one_seed_is_one_run() -> None:
    first, second = (work(np.random.default_rng(9), Service(0.8), (50, 3), 0.2, 4) for _ in range(2))
    assert (first == second).all()


def test_drawn_jobs_fail_as_often_as_they_should_and_wait_their_backoff() -> None:
    rng = np.random.default_rng(7)
    line = jobs(rng, [0.0] * 4000, Service(0.8), failure_share=0.5, max_attempts=3, backoff=Backoff(), jitter=0.25)
    attempts = [len(job.attempts) for job in line]
    assert max(attempts) == 3
    assert np.mean(attempts) == pytest.approx(1.75, abs=0.05)
    assert all(job.attempts[-1].retry_after_seconds is None for job in line)
    waits = [job.attempts[1].retry_after_seconds or 0.0 for job in line if len(job.attempts) == 3]
    assert 1.5 <= min(waits) < 1.6
    assert 1.9 < max(waits) <= 2
    at_once = jobs(rng, [0.0] * 50, Service(0.8), failure_share=0.5)
    assert {job.attempts[0].retry_after_seconds for job in at_once} == {None, 0.0}
