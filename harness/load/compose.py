"""From a measured run to the document that the report faces render."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from harness.capacity import quantities as q
from harness.contracts.subject import Subject
from harness.contracts.verdict import Verdict
from harness.document import (
    SCHEMA_VERSION,
    Document,
    EstimateDoc,
    FindingDoc,
    JudgementDoc,
    LoadDoc,
    PhaseDoc,
    PlayDoc,
    SeriesDoc,
    ServerDoc,
    TermDoc,
)
from harness.load.analysis import Analysis, analyse, slots_were_full
from harness.load.giving_up import judge_giving_up
from harness.load.measured import OUTAGE, RECOVERY, STEADY, WARM_UP, Measured
from harness.load.plan import LoadPlan
from harness.load.promises import judge_promises
from harness.load.samplers import number
from harness.load.trace import Look
from harness.load.verdict import Part, conclude, judge
from harness.procurement.advice import Traffic, advice, questions
from harness.procurement.thresholds import Demand, Shown, thresholds
from harness.run.compose import RunFacts, subject_document
from harness.run.records import records
from harness.run.requirements import titles
from harness.run.version import VERSION

PLAY = "load"
POINTS = 400
BIN_SECONDS = 1.0
BUSY_CORES_SHARE = 0.7
RECOVERY_SLACK = 1.1  # over the band's upper limit, when no recovery time was asked for
STORY = (
    "What happens: jobs arrive on a schedule that does not wait for anybody; when the queue is steady, an outage is made; then"
    " everything starts again while jobs keep arriving, until the queue is current.\n"
    "Why it matters: backlog divided by capacity is not the time until a backlog is gone, and a throughput that is back says"
    " nothing about the oldest job.\n"
    "What must hold: the queue is current again and stays so, in the time that its measured parts explain; no job is lost or"
    " stuck; and the run itself was sound."
)


@dataclass(frozen=True)
class Loaded:
    """A run, analysed and judged."""

    run: Measured
    found: Analysis
    parts: tuple[Part, ...]
    verdict: Verdict
    reason: str


def conclude_run(run: Measured) -> Loaded:
    """Analyse and judge."""
    found = analyse(run)
    parts = (*judge(run, found), *judge_promises(run, found), *judge_giving_up(run))
    verdict, reason = conclude(parts)
    return Loaded(run, found, parts, verdict, reason)


def load_document(facts: RunFacts, subject: Subject, loaded: Loaded, *, gate_passed: bool = False) -> Document:
    """One load run as a document."""
    run = loaded.run
    load = load_part(loaded, subject, gate_passed=gate_passed)
    play = PlayDoc(
        scenario=PLAY,
        title="net drain with inflow going on",
        verdict=loaded.verdict.value,
        reason=loaded.reason,
        serves=tuple(sorted({name for part in loaded.parts for name in part.serves})),
        seconds=round(run.phases.ended, 3),
        story=STORY,
        findings=tuple(
            FindingDoc(part.name, part.title, part.reason, part.serves)
            for part in loaded.parts
            if part.verdict is Verdict.FAIL
        )
        if loaded.verdict is Verdict.FAIL
        else (),
        judgements=tuple(
            JudgementDoc(part.name, part.title, part.verdict.value, part.reason, part.serves) for part in loaded.parts
        ),
        figures=load.figures,
        reproduce=facts.command,
    )
    word = {Verdict.PASS: "held", Verdict.FAIL: "broken", Verdict.INCONCLUSIVE: "inconclusive"}[loaded.verdict]
    requirements: dict[str, list[str]] = {}
    for part in loaded.parts:
        for name in part.serves:
            requirements.setdefault(name, []).append(part.name)
    return Document(
        schema_version=SCHEMA_VERSION,
        tool_version=VERSION,
        command=facts.command,
        started_at=facts.started_at,
        seconds=round(facts.seconds, 3),
        seed=facts.seed,
        verdict=loaded.verdict.value,
        summary=f"{word}: {loaded.reason}",
        subject=subject_document(subject, None),
        server=ServerDoc(run.server_version, run.server_source, run.server_address, run.server_settings),
        plays=(play,),
        records=records([play], load),
        requirements={name: tuple(given) for name, given in sorted(requirements.items())},
        requirement_titles=titles(),
        notes=(*facts.notes, *_notes(run)),
        load=load,
    )


def load_part(loaded: Loaded, subject: Subject, *, gate_passed: bool) -> LoadDoc:
    """The load's own part of a document."""
    run, found = loaded.run, loaded.found
    demand, shown, traffic = demanded(run), _shown(loaded), _traffic(loaded, subject)
    bottleneck = _bottleneck(loaded, shown)
    return LoadDoc(
        setting=_setting(run),
        time_scale=run.scaled.scale,
        phases=tuple(_phases(run)),
        estimates=tuple(_estimates(run, found)),
        terms=tuple(TermDoc(term.name, round(term.seconds, 3), term.told) for term in found.terms),
        figures=_figures(run, found),
        thresholds=thresholds(demand, shown),
        series=tuple(_series(run, found)),
        advice=(
            *questions(demand, shown, traffic),
            *advice(shown, traffic, gate_passed=gate_passed, bottleneck=bottleneck),
        ),
        bottleneck=bottleneck,
        demand={
            "arrival_per_second": demand.arrival_per_second,
            "outage_seconds": demand.outage_seconds,
            "recovery_seconds": demand.recovery_seconds,
            "attempts_per_job": round(found.rates.attempts_per_job, 6),
        },
    )


# -- words and numbers


def _setting(run: Measured) -> dict[str, str]:
    plan = run.plan
    said = {
        "arrivals": f"{q.say_number(plan.arrival_per_second)}/s, {plan.arrivals}" + _changing(plan),
        "service": f"{q.say_seconds(plan.service_seconds)}, {plan.service_shape}",
        "slots": f"{plan.slots} in {plan.workers} worker process{'es' if plan.workers > 1 else ''}"
        + (" on other machines" if plan.external else ""),
        "outage": f"{q.say_seconds(plan.outage_seconds)} of the {plan.outage}",
        "time scale": f"{float(plan.time_scale):g}",
        "lease, heartbeat, poll": ", ".join(
            q.say_seconds(each) for each in (plan.lease_seconds, plan.heartbeat_seconds, plan.poll_seconds)
        ),
    }
    if plan.slow is not None:
        said["slow jobs"] = f"{q.say_number(plan.slow.share * 100)} % take {q.say_seconds(plan.slow.seconds)}"
    if plan.failure_share:
        said["failing attempts"] = f"{q.say_number(plan.failure_share * 100)} %"
    if plan.limit_per_second is not None:
        said["external limit"] = f"{q.say_number(plan.limit_per_second)}/s"
    if plan.batch is not None:
        said["batch"] = str(plan.batch)
    if plan.prefetch is not None:
        said["prefetch"] = str(plan.prefetch)
    if plan.stuck_head is not None:
        said["stuck head"] = f"the first job is {plan.stuck_head}, on purpose"
    return said


def _changing(plan: LoadPlan) -> str:
    if plan.ramp is None:
        return ""
    return f" to {q.say_number(plan.ramp.to_per_second)}/s in {q.say_seconds(plan.ramp.seconds)}"


def _phases(run: Measured) -> Iterator[PhaseDoc]:
    phases = run.phases
    warm = "" if phases.warm_up is None else phases.warm_up.told
    steady = run.steady
    yield PhaseDoc(WARM_UP, 0.0, round(phases.steady_began, 3), warm)
    yield PhaseDoc(
        STEADY, round(phases.steady_began, 3), round(phases.outage_began, 3),
        f"at most {steady.unstarted:.0f} jobs unstarted, the oldest for {steady.oldest_unstarted_age:.2f} s",
    )  # fmt: skip
    yield PhaseDoc(OUTAGE, round(phases.outage_began, 3), round(phases.recovery_began, 3), f"the {run.plan.outage}")
    back = "not current again" if phases.current_at is None else f"current from {phases.current_at:.1f} s on"
    yield PhaseDoc(RECOVERY, round(phases.recovery_began, 3), round(phases.ended, 3), back)


def _estimates(run: Measured, found: Analysis) -> Iterator[EstimateDoc]:
    yield _estimate(
        "measured",
        found.drained_seconds,
        "from the order to start again until no more jobs are due and unstarted than in the steady phase",
        run,
    )
    yield _estimate(
        "current again",
        found.current_seconds,
        "until the oldest job is as young as in the steady phase, and stays so",
        run,
    )
    nominal = None if found.nominal.seconds is None else float(found.nominal.seconds)
    net = q.say_number(found.nominal.net_per_second)
    yield _estimate(
        "fluid, as planned", nominal,
        f"{q.say_number(found.nominal.backlog_jobs)} jobs ÷ net drain of {net}/s", run, never=found.nominal.never,
        limits=None if found.nominal_band is None else found.nominal_band.limits,
    )  # fmt: skip
    yield _estimate(
        "fluid, measured rates", found.predicted_seconds,
        f"{found.backlog_jobs} jobs, {float(found.realised.capacity_per_second):.1f}/s less"
        f" {found.rates.arrival_per_second:.1f}/s that arrive, start-up in front", run, never=found.realised.never,
        limits=_shifted(found),
    )  # fmt: skip
    if found.replay is not None and found.replay.replayed_seconds is not None:
        replayed = found.replay.replayed_seconds + (found.start_up_seconds or 0.0)
        residual = "" if found.replay.residual is None else f"; measured is {found.replay.residual:+.1%} off"
        yield _estimate(
            "replay of its own jobs",
            replayed,
            f"the same arrivals, durations and overhead, walked without the system{residual}",
            run,
        )
    wrong = found.nominal.backlog_jobs / found.nominal.capacity_per_second
    waited = "" if found.wait_at_recovery_seconds is None else f"; measured {found.wait_at_recovery_seconds:.1f} s"
    yield _estimate(
        "backlog ÷ capacity (not the drain time)",
        float(wrong),
        f"how long the job waits that arrives at recovery{waited}",
        run,
    )


def _estimate(
    name: str,
    seconds: float | None,
    told: str,
    run: Measured,
    *,
    never: bool = False,
    limits: tuple[float, float] | None = None,
) -> EstimateDoc:
    if seconds is None:
        return EstimateDoc(name, None, "never drains" if never else "not within the run", told)
    real = "" if run.scaled.scale == 1 else f" (× {run.scaled.scale:g}: {seconds * run.scaled.scale:.0f} s)"
    band = "" if limits is None else f", 95 % in {limits[0]:.1f} to {limits[1]:.1f} s"
    low, high = (None, None) if limits is None else (round(limits[0], 3), round(limits[1], 3))
    return EstimateDoc(name, round(seconds, 3), f"{seconds:.1f} s{band}{real}", told, low, high)


def _shifted(found: Analysis) -> tuple[float, float] | None:
    if found.realised_band is None:
        return None
    low, high = found.realised_band.limits
    shift = found.start_up_seconds or 0.0
    return low + shift, high + shift


def _figures(run: Measured, found: Analysis) -> dict[str, float | int | str]:
    steady = [look for look in run.looks if run.phases.steady_began <= look.at <= run.phases.outage_began]
    span = max(steady[-1].at - steady[0].at, 1e-9) if steady else 1e-9
    said: dict[str, float | int | str] = {
        "jobs": run.produced.count,
        "steady completions per second": round((steady[-1].done - steady[0].done) / span, 2) if steady else 0,
        "completions per second while draining": round(found.rates.completion_per_second, 2),
        "backlog jobs at the first call": found.backlog_jobs,
        "killed calls": found.killed,
        "service_ms": round(found.rates.service_seconds * 1000, 2),
        "service spread (cv²)": round(found.rates.service_cv2, 3),
        "overhead_ms": round(found.rates.overhead_seconds * 1000, 2),
        "producer_lag_p99_ms": round(run.produced.lag_seconds(0.99) * 1000, 2),
    }
    if found.start_up_seconds is not None:
        said["start_up_seconds"] = round(found.start_up_seconds, 3)
    if found.drained_seconds is not None:
        said["drained_seconds"] = round(found.drained_seconds, 3)
    if found.current_seconds is not None:
        said["current_again_seconds"] = round(found.current_seconds, 3)
    if run.given_up:
        said["given_up_jobs"] = len(run.given_up)
    waits = claim_waits(run)
    if len(waits):
        said["claim_wait_p50_ms"] = round(float(np.quantile(waits, 0.5)) * 1000, 2)
        said["claim_wait_p95_ms"] = round(float(np.quantile(waits, 0.95)) * 1000, 2)
    said |= _local_and_execution(run)
    return said


def claim_waits(run: Measured) -> np.ndarray:
    """From due to the call, for jobs due in the steady phase. What the outage cut off counts as long as it had waited by then."""
    began = run.phases.outage_began
    first, last = np.searchsorted(run.dues, [run.phases.steady_began, began - run.scaled.service_seconds])
    waits: np.ndarray = np.minimum(run.starts[first:last], began) - run.dues[first:last]
    return waits


def _local_and_execution(run: Measured) -> dict[str, float]:
    """Claimed by the table, and not in service at the sink: in a worker's memory, or on the way. Little's law on both counts."""
    frame = run.samples
    if "table_running" not in frame:
        return {}
    rows = frame[frame["phase"] == STEADY].dropna(subset=["table_running"])
    rate = len([1 for attempt in run.attempts if run.phases.steady_began <= attempt.called <= run.phases.outage_began])
    rate_per_second = rate / max(run.phases.outage_began - run.phases.steady_began, 1e-9)
    if not len(rows) or rate_per_second <= 0:
        return {}
    local = max(float((rows["table_running"] - rows["trace_in_service"]).mean()), 0.0) / rate_per_second
    return {"claimed_not_executing_ms": round(local * 1000, 2)}


def demanded(run: Measured) -> Demand:
    """What the plan asks for; where it says nothing, what theory allows."""
    plan = run.plan
    if plan.recovery_seconds is not None:
        recovery = float(plan.recovery_seconds)
    else:
        band = run.answer.band
        fluid = (
            None if run.answer.drain is None or run.answer.drain.seconds is None else float(run.answer.drain.seconds)
        )
        scaled = band.limits[1] if band is not None else fluid if fluid is not None else run.scaled.outage_seconds
        recovery = scaled * run.scaled.scale * RECOVERY_SLACK
    age = plan.age_seconds
    return Demand(
        arrival_per_second=float(plan.lasting_per_second),
        outage_seconds=float(plan.outage_seconds),
        recovery_seconds=round(recovery, 1),
        age_seconds=float(age)
        if age is not None
        else max(10 * float(plan.service_seconds), 2 * float(plan.poll_seconds)),
        service_seconds=float(plan.service_seconds),
    )


def _shown(loaded: Loaded) -> Shown:
    run, found = loaded.run, loaded.found
    scale, waits = run.scaled.scale, claim_waits(run)
    ages = [
        look.oldest_unfinished_age if not run.steady.moves else look.oldest_unstarted_age
        for look in run.looks
        if run.phases.steady_began <= look.at <= run.phases.outage_began
    ]
    server = number(run.samples, "host_cpu_percent", 0.95, RECOVERY)
    cores = number(run.samples, "server_cores", 0.95, RECOVERY)
    there = int(number(run.samples, "host_cores", 1.0) or run.cores)
    return Shown(
        # Completions are a capacity only when every slot had work.
        completion_low_per_second=found.rates.completion_low_per_second / scale
        if slots_were_full(run, found.backlog_jobs)
        else None,
        current_seconds=None if found.current_seconds is None else found.current_seconds * scale,
        steady_age_seconds=float(np.quantile(ages, 0.95)) * scale if ages else None,
        claim_p95_seconds=float(np.quantile(waits, 0.95)) * scale if len(waits) else None,
        database_cores=cores if server is None else server / 100 * there,
        cores=there,
        flush_p95_ms=number(run.samples, "flush_ms", 0.95),
        fsync=run.server_settings.get("fsync", "on") == "on",
    )


def _traffic(loaded: Loaded, subject: Subject) -> Traffic:
    run, scale = loaded.run, loaded.run.scaled.scale
    commits = number(run.samples, "commits_per_second", 0.5, RECOVERY)
    wal = number(run.samples, "wal_bytes_per_second", 0.5, RECOVERY)
    connections = number(run.samples, "connections", 1.0)
    return Traffic(
        slots=run.plan.slots,
        workers=run.plan.workers,
        connections=None if connections is None else int(connections),
        commits_per_second=None if commits is None else commits / scale,
        wal_bytes_per_second=None if wal is None else wal / scale,
        calls_per_second=loaded.found.rates.completion_per_second / scale,
        guarantee=subject.guarantee,
        ordered=subject.order == "per-key",
    )


def _bottleneck(loaded: Loaded, shown: Shown) -> str:
    """What limits, where the run shows it; empty: nothing that machines would mend, or a run that shows nothing."""
    run, found = loaded.run, loaded.found
    if loaded.verdict is Verdict.INCONCLUSIVE:
        return ""  # a late producer or a machine that others used up looks like too few slots
    if shown.database_cores is not None and shown.cores and shown.database_cores > BUSY_CORES_SHARE * shown.cores:
        if "host_cores" in run.samples:  # its node exporter tells of everything that runs there
            return (
                f"the database's host, where {shown.database_cores:.1f} of {shown.cores} cores were used while draining"
            )
        return f"the database, which used {shown.database_cores:.1f} of {shown.cores} cores while draining"
    if (
        shown.fsync
        and shown.flush_p95_ms is not None
        and found.rates.overhead_seconds > 0.2 * found.rates.service_seconds
    ):
        return (
            f"the disk and the database: a job's slot is held for {found.rates.overhead_seconds * 1000:.0f} ms besides its"
            f" {found.rates.service_seconds * 1000:.0f} ms of work, and a commit waits {shown.flush_p95_ms:.1f} ms"
        )
    if run.plan.limit_per_second is not None and run.answer.capacity.of == "external limit":
        return ""  # more machines do not lift it
    missed = {each.name for each in thresholds(demanded(run), shown) if each.met is False}
    slow = [name for name in ("completion rate", "time until current again") if name in missed]
    if slow:
        return f"the {run.plan.slots} slots, which were busy all through the drain, while {' and '.join(slow)} {'were' if len(slow) > 1 else 'was'} missed"
    if shown.flush_p95_ms is not None and any(name.startswith("disk wait") for name in missed):
        return f"the disk: a commit waits {shown.flush_p95_ms:.1f} ms in 5 % of the samples"
    return ""


# -- series


def _series(run: Measured, found: Analysis) -> Iterator[SeriesDoc]:
    looks = _thinned(run.looks, POINTS)
    at = tuple(round(look.at, 2) for look in looks)
    yield SeriesDoc("backlog", "jobs", at, tuple(float(look.unstarted) for look in looks))
    yield SeriesDoc("oldest age", "s", at, tuple(round(look.oldest_unstarted_age, 3) for look in looks))
    expected = [_expected(run, found, look.at) for look in looks]
    yield SeriesDoc("backlog", "jobs", at, tuple(round(jobs, 1) for jobs, _ in expected), expected=True)
    yield SeriesDoc("oldest age", "s", at, tuple(round(age, 3) for _, age in expected), expected=True)
    edges = np.arange(0.0, run.phases.ended + BIN_SECONDS, max(BIN_SECONDS, run.phases.ended / POINTS))
    middles = tuple(round(float(edge), 2) for edge in (edges[:-1] + edges[1:]) / 2)
    width = np.diff(edges)
    due, _ = np.histogram(run.dues, edges)
    done, _ = np.histogram(
        [attempt.ended for attempt in run.attempts if attempt.status is not None and attempt.status < 400], edges
    )
    yield SeriesDoc("arrivals", "jobs/s", middles, tuple(round(float(n), 2) for n in due / width))
    yield SeriesDoc("completions", "jobs/s", middles, tuple(round(float(n), 2) for n in done / width))
    yield from _sampled(run.samples[run.samples["at"] <= run.phases.ended + 1])


SAMPLED = (
    ("server_cores", "database CPU", "cores"),
    ("workers_cores", "workers' CPU", "cores"),
    ("host_cpu_percent", "database host CPU", "%"),
    ("disk_wait_percent", "disk wait", "%"),
    ("flush_ms", "commit flush", "ms"),
    ("select_1_ms", "select 1", "ms"),
    ("connections", "connections", "sessions"),
    ("waiting_for_lock", "waiting for a lock", "sessions"),
    ("dead_rows", "dead rows", "rows"),
    ("wal_bytes_per_second", "write-ahead log", "B/s"),
    ("table_due", "due by the table", "jobs"),
    ("table_running", "running by the table", "jobs"),
)


def _sampled(frame: pd.DataFrame) -> Iterator[SeriesDoc]:
    if frame.empty:
        return
    step = max(1, -(-len(frame) // POINTS))
    frame = frame.iloc[::step]
    at = tuple(round(float(each), 2) for each in frame["at"])
    for column, name, unit in SAMPLED:
        if column in frame and frame[column].notna().any():
            values = tuple(None if pd.isna(value) else round(float(value), 4) for value in frame[column])
            yield SeriesDoc(name, unit, at, values)


def _expected(run: Measured, found: Analysis, at: float) -> tuple[float, float]:
    """Backlog and oldest age by the fluid model, as planned."""
    phases, rate = run.phases, run.scaled.arrival_per_second
    if at < phases.outage_began:
        return 0.0, 0.0
    outage = phases.recovery_began - phases.outage_began
    if at < phases.recovery_began:
        return (at - phases.outage_began) * rate, at - phases.outage_began
    net = float(found.nominal.net_per_second)
    left = max(outage * rate - (at - phases.recovery_began) * net, 0.0)
    return left, max(outage - (at - phases.recovery_began) * net / rate, 0.0)


def _thinned(looks: Sequence[Look], most: int) -> Sequence[Look]:
    step = max(1, -(-len(looks) // most))
    return looks[::step]


def _notes(run: Measured) -> Iterator[str]:
    scale = run.scaled.scale
    if scale != 1:
        share = f"{scale:g}"
        yield (
            f"Time was compressed {share} times: service, outage, lease, heartbeat, poll and backoff are {share} times shorter, arrivals"
            f" {share} times denser. The database, the network, the CPU and the workers' start-up are not compressed: their share"
            f" of a job is {share} times what it will be, so overhead and CPU read high and drain times long."
        )
    if run.server_settings.get("fsync") == "off":
        yield "The server ran without fsync (--no-durable): this run says nothing about disks."
    dead = sum(job.state == "dead" for job in run.ended)
    aside = sum(job.state in ("paused", "reconcile") for job in run.ended)
    if dead + aside:
        why = (
            " A dependency that is down burns attempts: see max_attempts and backoff."
            if run.plan.outage == "sink"
            else ""
        )
        yield (
            f"{dead + aside} of {len(run.ended)} jobs were given up: {dead} ended dead, {aside} set aside for a person. They are no"
            f" backlog, and current again does not mean that they were done.{why}"
        )
    if run.worst_loop_lag > 0.1:
        yield f"The harness's own event loop was late by up to {run.worst_loop_lag * 1000:.0f} ms: the machine was busy with other things."
    yield from run.notes


def save_trace(run: Measured, folder: Path) -> None:
    """The trace as CSV: one row per call; and one per job."""
    frame = pd.DataFrame([vars(attempt) for attempt in run.attempts])
    frame.to_csv(folder / "calls.csv", index=False, float_format="%.5f")
    count = run.produced.count
    jobs = pd.DataFrame({
        "job": run.produced.job, "due": run.produced.due, "sent": run.produced.sent, "acknowledged": run.produced.acknowledged,
        "started": run.starts[run.produced.job] if count else [],
    })  # fmt: skip
    jobs.to_csv(folder / "jobs.csv", index=False, float_format="%.5f")
