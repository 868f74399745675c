"""A load run's verdict: is the run valid, is the queue current again, and does its drain take what its own parts explain?

Pure: everything it looks at is in the measured run and its analysis.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from harness.capacity.replay import TOLERANCE
from harness.contracts.verdict import Verdict
from harness.load.analysis import Analysis
from harness.load.measured import RECOVERY, STEADY, Measured

MOST_LAG_SECONDS = 0.05
MOST_LOOP_LAG_MS = 100.0
FULL_PERCENT = 90.0
MOST_FOREIGN_SHARE = 0.25  # of the cores
WARM_UP_FAILED = "the queue never became steady before the outage"


@dataclass(frozen=True)
class Part:
    """One part of the verdict."""

    name: str
    title: str
    verdict: Verdict
    reason: str
    serves: tuple[str, ...]


def judge(run: Measured, found: Analysis) -> tuple[Part, ...]:
    """All parts, in the order in which they are read."""
    return (
        _valid(run),
        _nothing_lost(run, found),
        _oldest_moves(run),
        _current(run, found),
        _slope(found),
        _band(run, found),
        _replay(run, found),
        _machine(run),
    )


def conclude(parts: tuple[Part, ...]) -> tuple[Verdict, str]:
    """One verdict and why. An invalid run says nothing of drain times; what is lost or stuck is so all the same."""
    by_name = {part.name: part for part in parts}
    hard = [by_name[name] for name in ("nothing_lost", "oldest_job_moves") if by_name[name].verdict is Verdict.FAIL]
    if hard:
        return Verdict.FAIL, hard[0].reason
    if by_name["valid_run"].verdict is not Verdict.PASS:
        return Verdict.INCONCLUSIVE, f"invalid run: {by_name['valid_run'].reason}"
    judged = [part for part in parts if part.name != "machine_was_ours"]
    verdict = Verdict.worst(part.verdict for part in judged)
    worst = [part for part in judged if part.verdict is verdict]
    machine = by_name["machine_was_ours"]
    if verdict is Verdict.FAIL and machine.verdict is not Verdict.PASS:
        return Verdict.INCONCLUSIVE, f"{'; '.join(part.reason for part in worst)}; however {machine.reason}"
    if verdict is Verdict.PASS:
        although = "" if machine.verdict is Verdict.PASS else f"; it held although {machine.reason}"
        return verdict, by_name["current_again"].reason + although
    return verdict, "; ".join(part.reason for part in worst)


def _part(name: str, verdict: Verdict, reason: str) -> Part:
    title, serves = TITLES[name]
    return Part(name, title, verdict, reason, serves)


TITLES = {
    "valid_run": ("The producer kept its schedule and every count adds up", ("L8",)),
    "machine_was_ours": ("The machine had room for the run", ("V12",)),
    "nothing_lost": ("No acknowledged job is lost, none has two effects", ("V9", "V10")),
    "oldest_job_moves": ("The oldest job moves, by its first due time", ("L5",)),
    "current_again": ("The queue is current again, and stays so", ("L4",)),
    "backlog_falls": ("The backlog falls with inflow going on", ("L3",)),
    "drain_in_band": ("The drain takes what the measured rates predict", ("L2", "L7")),
    "drain_replayed": ("The drain takes what its own jobs need", ("L7",)),
}


def _valid(run: Measured) -> Part:
    hurt = None
    if (
        run.plan.outage == "database"
    ):  # nobody can enqueue while it is stopped; what piled up is sent at once afterwards
        hurt = (run.phases.outage_began, run.phases.recovery_began + run.scaled.outage_seconds)
    lag = run.produced.lag_seconds(0.99, outside=hurt)
    mistakes = [*_unbalanced(run)]
    if lag > MOST_LAG_SECONDS:
        mistakes.append(
            f"the producer was late: 1 % of the jobs were sent {lag * 1000:.0f} ms or more after they were due"
            f" (allowed: {MOST_LAG_SECONDS * 1000:.0f} ms)"
        )
    if run.left:
        mistakes.append(f"a worker left during the run ({run.left[0]})")
    if run.strangers:
        mistakes.append(f"{run.strangers} calls came for jobs that were not ours")
    if mistakes:
        return _part("valid_run", Verdict.INCONCLUSIVE, "; ".join(mistakes))
    return _part(
        "valid_run",
        Verdict.PASS,
        f"{run.produced.count} jobs were sent on schedule (99 % within {lag * 1000:.1f} ms), and at every sample the states add up",
    )


def _machine(run: Measured) -> Part:
    """Whether the machine was ours while draining. A drain in time although it was not holds all the more; a slow one may be its fault."""
    told = _taken(run, RECOVERY)
    if told:
        return _part("machine_was_ours", Verdict.INCONCLUSIVE, f"{told}: the machine's slowness is in every number")
    return _part("machine_was_ours", Verdict.PASS, "nobody else used the machine up, as far as could be seen")


def _taken(run: Measured, phase: str) -> str:
    """What others took of the machine in a phase, as a clause; empty when nothing that matters, or nothing is known."""
    rows = run.samples[run.samples["phase"] == phase]
    if not len(rows):
        return ""
    told = []
    late = float(rows["loop_lag_ms"].quantile(0.95)) if "loop_lag_ms" in rows else 0.0
    if late > MOST_LOOP_LAG_MS:
        told.append(f"in 5 % of the {phase} phase's seconds the harness itself was held up by {late:.0f} ms or more")
    if "foreign_cores" in rows:
        foreign, busy = float(rows["foreign_cores"].median()), float(rows["cpu_percent"].median())
        if busy >= FULL_PERCENT and foreign > MOST_FOREIGN_SHARE * run.cores:
            told.append(
                f"in the {phase} phase other programs used {foreign:.1f} of the {run.cores} cores, and none was left"
            )
    return "; ".join(told)


def _unbalanced(run: Measured) -> Iterator[str]:
    """At every sample: acknowledged ≤ rows ≤ due, and rows = done + dead + pending + scheduled + running + set aside."""
    frame = run.samples
    if "accounted" not in frame:
        yield "no sample of the table could be taken"
        return
    sampled = frame.dropna(subset=["accounted"])
    wrong = sampled[sampled["accounted"] != sampled["table_total"]]
    if len(wrong):
        yield f"{len(wrong)} samples hold jobs in a state that the mapping does not name"
    missing = sampled[sampled["table_total"] < sampled["acknowledged_before"]]
    if len(missing) and not run.deletes:
        yield f"{len(missing)} samples hold fewer jobs than had been acknowledged"
    more = sampled[sampled["table_total"] > sampled["acknowledged_after"]]
    if len(more):
        yield f"{len(more)} samples hold more jobs than were due"


def _nothing_lost(run: Measured, found: Analysis) -> Part:
    there = {job.key for job in run.ended}
    acknowledged = run.produced.job[~np.isnan(run.produced.acknowledged)]
    keys = {f"{run.prefix}{int(job):08d}": int(job) for job in acknowledged}
    lost = [job for key, job in keys.items() if key not in there and not (run.deletes and run.effects[job] > 0)]
    twice = int(np.count_nonzero(run.effects > 1))
    unended = [job for job in run.ended if job.state in ("pending", "retry", "running")]
    if lost:
        return _part(
            "nothing_lost",
            Verdict.FAIL,
            f"{len(lost)} acknowledged jobs are gone, the first of them {run.prefix}{lost[0]:08d}",
        )
    if twice:
        return _part("nothing_lost", Verdict.FAIL, f"{twice} jobs had their effect more than once")
    told = f"all {len(keys)} acknowledged jobs are accounted for"
    if found.repeated:
        told += f"; {found.repeated} were called again although a call of theirs had succeeded, and had one effect"
    dead = sum(job.state == "dead" for job in run.ended)
    aside = sum(job.state in ("paused", "reconcile") for job in run.ended)
    if dead or aside:
        told += f"; {dead} ended dead and {aside} set aside for a person"
    if unended:
        told += f"; {len(unended)} had not ended when the run did"
    return _part("nothing_lost", Verdict.PASS, told)


def _oldest_moves(run: Measured) -> Part:
    """Judged when the backlog itself is gone: then the oldest unfinished job must be young."""
    last = run.looks[-1]
    oldest = _oldest_at_end(run)
    limit = run.steady.oldest_unfinished_age
    steady = [look for look in run.looks if run.phases.steady_began <= look.at <= run.phases.outage_began]
    rate = (steady[-1].done - steady[0].done) / max(steady[-1].at - steady[0].at, 1e-9) if steady else 0.0
    age = None if oldest is None else last.at - float(run.dues[oldest])
    late = [look.unstarted for look in run.looks if look.at >= run.phases.ended - run.stuck_seconds]
    if min(late) > run.steady.unstarted and run.steady.moves:
        return _part(
            "oldest_job_moves", Verdict.NOT_APPLICABLE, "there is still a backlog, and the oldest job is a part of it"
        )
    if age is not None and age > limit and _at_the_head(run, oldest):
        return _part(
            "oldest_job_moves",
            Verdict.FAIL,
            f"job {run.prefix}{oldest:08d} has been due for {age:.1f} s and does not move because something at the head holds it,"
            f" however {rate:.0f} jobs/s were completed past it: mean throughput hides it",
        )
    return _part(
        "oldest_job_moves",
        Verdict.PASS,
        "no job is left unfinished"
        if age is None
        else f"the oldest unfinished job was due {max(age, 0):.2f} s before the end",
    )


def _at_the_head(run: Measured, job: int | None) -> bool:
    """Whether it was the oldest unfinished one for long."""
    late = [look for look in run.looks if look.at >= run.phases.ended - run.stuck_seconds]
    return late[-1].at - late[0].at >= run.stuck_seconds * 0.8 and all(
        look.oldest_unfinished is not None and (job is None or look.oldest_unfinished <= job) for look in late
    )


def _oldest_at_end(run: Measured) -> int | None:
    """By its first due time; what has ended dead is not unfinished."""
    frame = run.samples
    if "table_oldest_unfinished" not in frame:
        return None
    sampled = frame[(frame["at"] <= run.phases.ended)].dropna(subset=["accounted"])
    if not len(sampled):
        return None
    key = sampled["table_oldest_unfinished"].iloc[-1]
    return int(key.removeprefix(run.prefix)) if isinstance(key, str) else None


def _current(run: Measured, found: Analysis) -> Part:
    warm = run.phases.warm_up
    if warm is not None and not warm.steady:
        grew = f"{WARM_UP_FAILED}: {warm.told}"
        return _part("current_again", Verdict.FAIL if warm.grows else Verdict.INCONCLUSIVE, grew)
    # The steady phase is the yardstick: taken on a machine that others used up, it would pass too much.
    lenient = _taken(run, STEADY)
    if found.current_seconds is not None and lenient:
        return _part(
            "current_again",
            Verdict.INCONCLUSIVE,
            f"{lenient}: what it measured is no yardstick for being current again",
        )
    if found.current_seconds is not None:
        return _part(
            "current_again",
            Verdict.PASS,
            f"current again {found.current_seconds:.1f} s after recovery began, and still so {run.held_seconds:.1f} s later:"
            f" no job unstarted for more than {run.steady.oldest_unstarted_age:.2f} s, as in the steady phase",
        )
    falls = found.slope.falls if found.slope is not None else None
    last = run.looks[-1]
    told = (
        f"not current again {run.phases.ended - run.phases.recovery_began:.0f} s after recovery began:"
        f" {last.unstarted} jobs unstarted, the oldest for {last.oldest_unstarted_age:.1f} s"
    )
    if falls and last.unstarted > run.steady.unstarted:
        return _part(
            "current_again", Verdict.INCONCLUSIVE, f"{told}; the backlog was falling, so a longer run would tell"
        )
    return _part("current_again", Verdict.FAIL, told)


def _slope(found: Analysis) -> Part:
    slope = found.slope
    if slope is None:
        return _part("backlog_falls", Verdict.INCONCLUSIVE, "no worker made a call after recovery began")
    falls = slope.per_second >= 0
    moved = f"fell by {slope.per_second:.1f}" if falls else f"grew by {-slope.per_second:.1f}"
    low, high = (slope.low, slope.high) if falls else (-slope.high, -slope.low)
    told = (
        f"the backlog {moved} jobs/s over {slope.over_seconds:.1f} s"
        f" (95 %: {low:.1f} to {high:.1f}), with {found.rates.arrival_per_second:.1f}/s arriving"
    )
    if slope.falls is None:
        return _part("backlog_falls", Verdict.INCONCLUSIVE, f"undecided: {told}")
    if not slope.falls:
        return _part("backlog_falls", Verdict.FAIL, f"never drains: {told}")
    return _part("backlog_falls", Verdict.PASS, told)


def _band(run: Measured, found: Analysis) -> Part:
    if run.plan.outage == "sink":
        return _part(
            "drain_in_band",
            Verdict.NOT_APPLICABLE,
            "after an outage of the sink jobs wait for their backoff, not for slots",
        )
    band = found.realised_band
    if found.realised.seconds is None:
        return _part(
            "drain_in_band", Verdict.INCONCLUSIVE, "by the measured rates the backlog never drains: there is no band"
        )
    if found.drained_seconds is None:
        return _part("drain_in_band", Verdict.INCONCLUSIVE, "the backlog was not gone when the run ended")
    if band is None:
        return _part(
            "drain_in_band", Verdict.NOT_APPLICABLE, "the backlog was smaller than the slots: there is no band"
        )
    measured = found.drained_seconds - (found.start_up_seconds or 0.0)
    low, high = band.limits
    told = f"{measured:.1f} s from the first call on, predicted {band.mean_seconds:.1f} s, 95 % of the time in {low:.1f} to {high:.1f} s"
    if band.holds(measured):
        return _part("drain_in_band", Verdict.PASS, told)
    if measured < low:
        return _part("drain_in_band", Verdict.PASS, f"{told}: faster than predicted")
    if found.replay is not None and found.replay.explained:
        return _part(
            "drain_in_band",
            Verdict.INCONCLUSIVE,
            f"{told}: outside, but its own jobs needed that long (bad luck); run it again",
        )
    return _part("drain_in_band", Verdict.FAIL, f"{told}: slower than its rates explain")


def _replay(run: Measured, found: Analysis) -> Part:
    replay = found.replay
    if replay is None:
        why = "jobs wait for their backoff" if run.plan.outage == "sink" else "a job was stuck on purpose"
        return _part("drain_replayed", Verdict.NOT_APPLICABLE, f"{why}, of which the trace knows nothing")
    residual = replay.residual
    if residual is None or replay.replayed_seconds is None or replay.measured_seconds is None:
        return _part(
            "drain_replayed", Verdict.INCONCLUSIVE, "the backlog was not gone when the run ended, or there was none"
        )
    if found.rates.overhead_attempts == 0 and run.plan.limit_per_second is None:
        return _part(
            "drain_replayed",
            Verdict.INCONCLUSIVE,
            "too few calls to know the overhead well enough: a longer outage would tell",
        )
    told = (
        f"measured {replay.measured_seconds:.2f} s, the same jobs replayed {replay.replayed_seconds:.2f} s"
        f" ({residual:+.1%}; allowed ± {TOLERANCE:.0%} and {replay.sampling_seconds:.2f} s)"
    )
    if replay.explained:
        return _part("drain_replayed", Verdict.PASS, told)
    if residual > 0:
        return _part("drain_replayed", Verdict.FAIL, f"{told}: the system is slower than its parts")
    return _part("drain_replayed", Verdict.PASS, f"{told}: it became faster as it went")
