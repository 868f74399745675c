"""What a claim costs: its plan and latency on a full table, WAL beside payload size, and jobs per second over pgbench.

Each comparison alternates its sides in one run, so that whatever else the machine does hits both. The server is of this
run alone and does not flush to disk: waiting for a disk would make all sides alike.
"""

import asyncio
import contextlib
import json
import os
import re
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from harness.bench.queue_tables import Connection, connected, install, own_server, quantile, run_own
from harness.contracts.problem import EnvironmentFailed
from harness.postgres.address import Address
from harness.postgres.cluster import Cluster
from reference_queue.enqueue import NewJob, enqueue
from reference_queue.statements import Statements

AIM_LATENCY = 1.5
AIM_WAL = 1.1
AIM_OVER_PGBENCH = {1: 0.5, 10: 0.75}
PARTIAL, FULL = "queue_job_due", "queue_job_by_state"
HOLDER = {"kinds": ["default"], "worker": "bench", "lease": "1h"}


@dataclass(frozen=True)
class Scale:
    """How large a run is."""

    finished: int = 1_000_000
    pending: int = 10_000
    running: int = 1_000
    claims: int = 2_000
    claims_of_full_index: int = 300
    explained: int = 50
    wal_jobs: int = 40
    large_payload_bytes: int = 1_000_000
    workers: Sequence[int] = (1, 2, 4, 8)
    turns: int = 4
    backlog: int = 30_000  # before each turn: more than a turn can take


SMALL = Scale(20_000, 1_000, 100, 100, 20, 5, 5, 100_000, (1, 2), 1, 20_000)
TURN_SECONDS = 1
SESSIONS_END_SECONDS = 5.0
PGBENCH_SESSIONS = "select 1 from pg_stat_activity where application_name = 'pgbench'"


async def run(*, small: bool = False) -> dict[str, Any]:
    """Everything, on an embedded server of our own; below four minutes."""
    began = time.monotonic()
    load = os.getloadavg()[0]
    scale = SMALL if small else Scale()
    texts = Statements()
    async with own_server() as cluster:
        none, full = await cluster.create_database("none"), await cluster.create_database("full")
        for address, finished in ((none, 0), (full, scale.finished)):
            with connected(address) as connection:
                install(connection, finished=finished, pending=scale.pending, running=scale.running)
        other = await cluster.create_database("other", template="full")
        with connected(none) as at_none, connected(full) as at_full, connected(other) as at_other:
            _take_the_full_index(at_other)
            plan = explain_claim(at_full, texts, PARTIAL, scale.explained)
            plan_of_full_index = explain_claim(at_other, texts, FULL, scale.explained)
            latency = _latency(scale, {"none": at_none, "finished": at_full, "full_index": at_other}, texts)
            sizes = {
                "partial": run_own(at_full, "index_size", {"name": PARTIAL})[0]["bytes"],
                "full": run_own(at_other, "index_size", {"name": FULL})[0]["bytes"],
            }
            wal = _wal(scale, at_none, texts)
        throughput = await _throughput(scale, cluster, none, texts)
    ratio = latency["p99_ratio_finished_over_none"]
    met = {
        "plan": plan["is_index_scan"],
        "latency": ratio <= AIM_LATENCY,
        "wal": wal["large_over_small"] <= AIM_WAL,
        **throughput.pop("met"),
    }
    return {
        "name": "claim",
        "server": f"PostgreSQL {cluster.version}, {cluster.source}, fsync off",
        "jobs": {"finished": scale.finished, "pending": scale.pending, "running": scale.running},
        "aims": f"index scan on {PARTIAL}; p99 ratio ≤ {AIM_LATENCY}; WAL ratio ≤ {AIM_WAL}; "
        + "; ".join(f"batch {batch} ≥ {aim} of pgbench" for batch, aim in AIM_OVER_PGBENCH.items()),
        "met": met,
        "plan": plan,
        "latency": latency,
        "index_choice": {
            "index_bytes": sizes,
            "p50_ratio_full_over_partial": latency.pop("p50_ratio_full_index"),
            "plan_with_full_index": plan_of_full_index,
        },
        "wal": wal,
        "throughput": throughput,
        "machine": {"cores": os.cpu_count() or 1, "load_before": round(load, 1)},
        "seconds": round(time.monotonic() - began, 1),
    }


# --- the plan -------------------------------------------------------------------------------------------------------


def explain_claim(connection: Connection, texts: Statements, index: str, claims: int) -> dict[str, Any]:
    """The plan of the packaged claim, as EXPLAIN tells it, both as planned for its values and as planned once for all."""
    explain = "explain (analyze, buffers, format json) " + texts.text("claim", 1)
    told: dict[str, Any] = {"index": index}
    for mode in ("force_custom_plan", "force_generic_plan"):
        connection.execute(f"set plan_cache_mode = {mode}")
        buffers, scans = [], set[str]()
        for _ in range(claims):
            with connection.transaction(force_rollback=True):
                row = connection.execute(explain, HOLDER, prepare=True).fetchone()
            assert row is not None
            root = row["QUERY PLAN"][0]["Plan"]
            buffers.append(root["Shared Hit Blocks"] + root["Shared Read Blocks"])
            scans |= set(candidate_scans(root))
        told[mode.removeprefix("force_")] = {
            "scans_for_candidates": sorted(scans),
            "buffers_per_claim": statistics.median(buffers),
            "most_buffers": max(buffers),
        }
    connection.execute("reset plan_cache_mode")
    told["is_index_scan"] = all(
        told[plan]["scans_for_candidates"] == [f"Index Scan using {index}"] for plan in ("custom_plan", "generic_plan")
    )
    return told


def candidate_scans(root: Mapping[str, Any]) -> Iterator[str]:
    """How the candidates are found: every scan of the job table below the CTE of that name, its sub-plans apart."""
    for node in nodes(root):
        if node.get("Subplan Name") == "CTE candidate":
            for below in nodes(node, lambda inner: inner.get("Parent Relationship") != "SubPlan"):
                if below.get("Relation Name") == "queue_job" or "Index Name" in below:
                    by = f" using {below['Index Name']}" if "Index Name" in below else ""
                    yield f"{below['Node Type']}{by}"


def nodes(
    node: Mapping[str, Any], wanted: Callable[[Mapping[str, Any]], bool] = lambda _: True
) -> Iterator[Mapping[str, Any]]:
    """The node and those below it, as far as they are wanted."""
    yield node
    for inner in node.get("Plans", ()):
        if wanted(inner):
            yield from nodes(inner, wanted)


def _take_the_full_index(connection: Connection) -> None:
    """In place of the partial one, and of the one by age, which a planner in need could misuse."""
    connection.execute(f"drop index {PARTIAL}, queue_job_overdue")
    run_own(connection, "full_index")
    connection.execute("vacuum (analyze) queue_job")


# --- latency --------------------------------------------------------------------------------------------------------


def _latency(scale: Scale, at: Mapping[str, Connection], texts: Statements) -> dict[str, Any]:
    """Claims in turns of ten, each completed afterwards, so that as many jobs run and are due as before."""
    wanted = {"none": scale.claims, "finished": scale.claims, "full_index": scale.claims_of_full_index}
    taken: dict[str, list[float]] = {name: [] for name in wanted}
    while any(len(taken[name]) < wanted[name] for name in wanted):
        for name, connection in at.items():
            if len(taken[name]) < wanted[name]:
                taken[name] += claim_times(connection, texts, 10)
    for connection in at.values():
        run_own(connection, "fill_pending", {"jobs": scale.pending})
    milliseconds = {
        name: {
            "claims": len(times),
            "p50_ms": round(quantile(times, 0.5) * 1000, 3),
            "p99_ms": round(quantile(times, 0.99) * 1000, 3),
        }
        for name, times in taken.items()
    }
    return {
        **milliseconds,
        "p50_ratio_finished_over_none": _ratio(milliseconds, "p50_ms", "finished", "none"),
        "p99_ratio_finished_over_none": _ratio(milliseconds, "p99_ms", "finished", "none"),
        "p50_ratio_full_index": _ratio(milliseconds, "p50_ms", "full_index", "finished"),
    }


def claim_times(connection: Connection, texts: Statements, count: int) -> list[float]:
    """Seconds that each of so many claims took."""
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        row = connection.execute(texts.text("claim", 1), HOLDER, prepare=True).fetchone()
        taken.append(time.perf_counter() - began)
        if row is None:
            raise EnvironmentFailed("the benchmark ran out of due jobs before it had enough claims")
        _complete(connection, texts, row)
    return taken


def _complete(connection: Connection, texts: Statements, row: Mapping[str, Any]) -> None:
    grant = {"id": row["id"], "version": row["version"], "worker": HOLDER["worker"]}
    connection.execute(texts.text("complete"), {**grant, "remote_id": None, "reason": "completed"}, prepare=True)


def _ratio(of: Mapping[str, Mapping[str, float]], figure: str, over: str, under: str) -> float:
    return round(of[over][figure] / of[under][figure], 3)


# --- WAL ------------------------------------------------------------------------------------------------------------


def _wal(scale: Scale, connection: Connection, texts: Statements) -> dict[str, Any]:
    """Bytes of WAL from claim to done, job by job, small and large payloads by turns. Nobody else writes here."""
    sizes = {"small": 100, "large": scale.large_payload_bytes}
    connection.execute("delete from queue_job where state = 'pending'")
    for number in range(scale.wal_jobs):
        for name, size in sizes.items():
            enqueue(connection, NewJob(f"{name} {number}", payload="x" * size))
    connection.execute("vacuum (analyze) queue_job")
    bytes_of: dict[str, list[int]] = {name: [] for name in sizes}
    for _ in range(scale.wal_jobs):
        for name in sizes:
            begin = _wal_at(connection)
            row = connection.execute(texts.text("claim", 1), HOLDER, prepare=True).fetchone()
            assert row is not None
            assert row["operation_key"].startswith(name)
            grant = {"id": row["id"], "version": row["version"], "worker": HOLDER["worker"]}
            connection.execute(texts.text("mark_calling"), grant, prepare=True)
            _complete(connection, texts, row)
            bytes_of[name].append(_wal_at(connection) - begin)
    # Medians: now and then a write carries the cleaning of its page or the split of an index page.
    per_change = {name: round(statistics.median(found) / 3) for name, found in bytes_of.items()}
    return {
        "payload_bytes": sizes,
        "wal_bytes_per_state_change": per_change,
        "state_changes": "claim, mark_calling, complete",
        "large_over_small": round(per_change["large"] / per_change["small"], 3),
    }


def _wal_at(connection: Connection) -> int:
    row = connection.execute("select pg_current_wal_insert_lsn() - '0/0' as at").fetchone()
    assert row is not None
    return int(row["at"])


# --- jobs per second ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Turn:
    """What one turn took, by its own watch, and the CPU time of its client processes."""

    seconds: float
    client_cpu_seconds: float


@dataclass(frozen=True)
class Rate:
    """What one turn came to. The CPU time is of server and client together."""

    jobs_per_second: float
    cpu_us_per_job: float
    client_cpu_us_per_job: float


async def _throughput(scale: Scale, cluster: Cluster, address: Address, texts: Statements) -> dict[str, Any]:
    pgbench = cluster.programs / "pgbench" if cluster.programs is not None else None
    if pgbench is None or not pgbench.is_file():
        return {"met": {}, "skipped": "this server came without pgbench, so there is nothing to compare with"}
    cases: dict[str, Any] = {}
    met: dict[str, bool] = {}
    with tempfile.TemporaryDirectory() as folder, connected(address) as connection:
        meter = Meter(connection, scale.backlog)
        async with _clients(address, max(scale.workers)) as clients:
            for batch, aim in AIM_OVER_PGBENCH.items():
                script = Path(folder) / f"batch{batch}.sql"
                script.write_text(pgbench_script(texts, batch), encoding="utf-8")
                for workers in scale.workers:
                    theirs, ours = [], []
                    for _ in range(scale.turns):
                        theirs.append(await meter.rate(_pgbench_turn(pgbench, address, script, workers)))
                        ours.append(await meter.rate(_turn(clients[:workers], batch)))
                    cases[f"batch {batch}, {workers} workers"] = _compare(ours, theirs)
                ratios = [case["over_pgbench"] for name, case in cases.items() if name.startswith(f"batch {batch},")]
                met[f"batch {batch}"] = min(ratios) >= aim
    return {
        "met": met,
        "same_sql": "both sides claim with claim.sql and complete with complete.sql (batch 1) or, all of a batch in one statement, "
        "complete_together.sql (batch 10); one connection per worker; no finished jobs at the start, a vacuum before each turn",
        "cases": cases,
    }


def _compare(ours: Sequence[Rate], theirs: Sequence[Rate]) -> dict[str, float]:
    """Medians over pairs of turns. On cores that others use too, the ratio of CPU times is the steadier one of the two."""
    pairs = list(zip(ours, theirs, strict=True))
    return {
        "jobs_per_second": round(statistics.median(rate.jobs_per_second for rate in ours)),
        "pgbench_jobs_per_second": round(statistics.median(rate.jobs_per_second for rate in theirs)),
        "over_pgbench": round(
            statistics.median(our.jobs_per_second / their.jobs_per_second for our, their in pairs), 3
        ),
        "cpu_us_per_job": round(statistics.median(rate.cpu_us_per_job for rate in ours)),
        "of_it_client": round(statistics.median(rate.client_cpu_us_per_job for rate in ours)),
        "pgbench_cpu_us_per_job": round(statistics.median(rate.cpu_us_per_job for rate in theirs)),
        "over_pgbench_by_cpu": round(
            statistics.median(their.cpu_us_per_job / our.cpu_us_per_job for our, their in pairs), 3
        ),
    }


class Meter:
    """Measures turns. The queue's audit says how many jobs were completed, whoever did it."""

    def __init__(self, connection: Connection, backlog: int) -> None:
        self._connection = connection
        self._backlog = backlog

    async def rate(self, turn: Awaitable[Turn]) -> Rate:
        """Fill up the backlog, let the turn happen, and count."""
        connection = self._connection
        run_own(connection, "fill_pending", {"jobs": self._backlog})
        connection.execute("vacuum queue_job")
        last = run_own(connection, "completed", {"after": 0})[0]["last"]
        busy = _server_cpu_seconds(connection)
        took = await turn
        busy = _server_cpu_seconds(connection) - busy + took.client_cpu_seconds
        jobs = run_own(connection, "completed", {"after": last})[0]["jobs"]
        if connection.execute("select 1 from queue_job where state = 'pending' limit 1").fetchone() is None:
            raise EnvironmentFailed(
                f"this machine completes {self._backlog} jobs in {TURN_SECONDS} s: the benchmark's backlog is too small"
            )
        return Rate(jobs / took.seconds, busy / jobs * 1e6, took.client_cpu_seconds / jobs * 1e6)


def _server_cpu_seconds(connection: Connection) -> float:
    """Of the server's processes, those that have ended too; pgbench's sessions take a moment to end, and are waited for."""
    postmaster = psutil.Process(connection.info.backend_pid).parent()
    deadline = time.monotonic() + SESSIONS_END_SECONDS
    while connection.execute(PGBENCH_SESSIONS).fetchone() is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    while True:
        children = postmaster.children()
        ended = postmaster.cpu_times()
        with contextlib.suppress(psutil.NoSuchProcess):  # it ended between the two looks: look again
            living = [process.cpu_times() for process in children]
            if children == postmaster.children() or time.monotonic() > deadline:
                return float(
                    ended.children_user + ended.children_system + sum(times.user + times.system for times in living)
                )


@contextlib.asynccontextmanager
async def _clients(address: Address, count: int) -> AsyncIterator[Sequence[asyncio.subprocess.Process]]:
    clients = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", "harness.bench.claim_client", f"bench {number}", address.dsn(),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )
        for number in range(count)
    ]  # fmt: skip
    try:
        yield clients
    finally:
        for client in clients:
            if client.stdin is not None:
                client.stdin.close()
        await asyncio.gather(*(client.wait() for client in clients))


async def _turn(clients: Sequence[asyncio.subprocess.Process], batch: int) -> Turn:
    for client in clients:
        assert client.stdin is not None
        client.stdin.write(f"{batch} {TURN_SECONDS}\n".encode())
    answers = await asyncio.gather(*(client.stdout.readline() for client in clients if client.stdout is not None))
    if not all(answers):
        raise EnvironmentFailed("a worker of the benchmark ended early; what it said is above")
    told = [json.loads(answer) for answer in answers]
    return Turn(max(each["seconds"] for each in told), sum(each["cpu_seconds"] for each in told))


async def _pgbench_turn(program: Path, address: Address, script: Path, clients: int) -> Turn:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = await asyncio.create_subprocess_exec(
        program, "-n", "-M", "prepared", "-c", str(clients), "-j", str(min(clients, 2)), "-T", str(TURN_SECONDS),
        "-f", script, "-D", "kinds={default}", "-D", "worker=pgbench", "-D", "lease=1h", "-D", "reason=completed",
        env={**os.environ, **address.env()},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, complaint = await done.communicate()
    said = re.search(r"actually processed: (\d+)[\s\S]*tps = ([\d.]+)", out.decode())
    if done.returncode or said is None:
        raise EnvironmentFailed(f"pgbench failed: {complaint.decode(errors='replace').strip()[-500:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Turn(int(said[1]) / float(said[2]), cpu)


def pgbench_script(texts: Statements, batch: int) -> str:
    """The packaged claim, its last SELECT folded to one row for pgbench's variables; then what the queue completes with."""
    claim = _pgbench(texts.text("claim", batch))
    head, rows = claim.rsplit("\nselect ", 1)
    folded = f"{head}, claimed as (\nselect {rows}\n)\n"
    if batch == 1:
        return f"{folded}select id, version from claimed \\gset\n{_pgbench(texts.text('complete'))};\n"
    together = _pgbench(texts.text("complete_together"))
    nothing = "array_fill(null::text, array[cardinality(:ids::bigint[])])"
    same = "array_fill(:reason::text, array[cardinality(:ids::bigint[])])"
    together = together.replace(":remote_ids::text[]", nothing).replace(":reasons::text[]", same)
    return f"{folded}select coalesce(array_agg(id), '{{}}') as ids, coalesce(array_agg(version), '{{}}') as versions from claimed \\gset\n{together};\n"


def _pgbench(text: str) -> str:
    """The statement with pgbench's variables for ours."""
    return re.sub(r"%\((\w+)\)s", r":\1", text.replace("%(remote_id)s", "null::text")).rstrip().rstrip(";")
