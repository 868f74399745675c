"""Schedules per second of the explorer over isolationtester's, on the same steps, same server, same run.

Two sessions of five steps that never block: all 252 orders, by both. And two sessions that block each other, all of whose
feasible orders the explorer runs, while isolationtester waits for a blocked session to move: it is given a stated time.
Each resets the table between two schedules as it does: isolationtester drops and creates it, the explorer empties it.
"""

import asyncio
import contextlib
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from harness.contracts.problem import EnvironmentFailed
from harness.explore.sessions import Script, SessionStage
from harness.explore.tree import Explorer, Tally
from harness.postgres.address import Address
from harness.postgres.cluster import open_cluster
from harness.postgres.options import parse_server
from harness.processes.watchdog import Watchdog

AIM = 1.0
TURNS = 3
PATIENCE_SECONDS = 15.0
BUDGET_SECONDS = 120.0

_JOBS = "create table bench_job (id int primary key, state text not null default 'pending', n int not null default 0)"
_TEARDOWN = "drop table bench_job"


def _steps(row: int) -> tuple[str, ...]:
    return (
        f"update bench_job set state = 'running' where id = {row};",
        f"select state from bench_job where id = {row};",
        f"update bench_job set n = n + 1 where id = {row};",
        f"select n from bench_job where id = {row};",
        f"update bench_job set state = 'done' where id = {row};",
    )


CALM = Script(f"{_JOBS}; insert into bench_job values (1), (2);", f"{_TEARDOWN};", (_steps(1), _steps(2)))
_LOCKING = (
    "begin;",
    "update bench_job set n = n + 1 where id = 1;",
    "select n from bench_job where id = 1;",
    "update bench_job set n = n + 1 where id = 2;",
    "commit;",
)
BLOCKING = Script(f"{_JOBS}; insert into bench_job values (1), (2);", f"{_TEARDOWN};", (_LOCKING, _LOCKING))


async def run() -> dict[str, Any]:
    """Turns of both alternate, so that a machine that slows down slows both. Needs isolationtester."""
    program = find_isolationtester()
    with tempfile.TemporaryDirectory() as name, Watchdog() as watchdog:
        folder = Path(name)
        async with open_cluster(parse_server("embedded"), watchdog, folder) as cluster:
            address = await cluster.create_database("explore_bench")
            theirs: list[float] = []
            ours: list[float] = []
            tally = Tally()
            permutations = 0
            for _ in range(TURNS):
                permutations, took = await _isolationtester(program, address, CALM, BUDGET_SECONDS)
                theirs.append(permutations / took)
                tally, took = await _explorer(address, CALM)
                ours.append(tally.runs / took)
            stalled, stalled_seconds = await _isolationtester(program, address, BLOCKING, PATIENCE_SECONDS)
            blocking, blocking_seconds = await _explorer(address, BLOCKING)
            version = cluster.version
    ratios = sorted(mine / their for mine, their in zip(ours, theirs, strict=True))
    return {
        "server": version,
        "calm": {
            "schedules": tally.runs,
            "isolationtester_schedules": permutations,
            "explorer_per_second": round(_median(ours)),
            "isolationtester_per_second": round(_median(theirs)),
            "ratio": round(ratios[len(ratios) // 2], 2),
            "ratios": [round(ratio, 2) for ratio in ratios],
            "aim": AIM,
        },
        "blocking": {
            "explorer_seconds": round(blocking_seconds, 2),
            "explorer_schedules": blocking.runs,
            "explorer_complete": blocking.complete,
            "isolationtester_schedules": stalled,
            "isolationtester_given_seconds": round(stalled_seconds, 1),
        },
    }


def find_isolationtester() -> str:
    """From the path, or where Debian's postgresql-server-dev packages put it. Raises EnvironmentFailed."""
    found = shutil.which("isolationtester")
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/lib/pgxs/src/test/isolation/isolationtester"))
    if found is None and not candidates:
        raise EnvironmentFailed(
            "isolationtester is not here; it comes with PostgreSQL's server development files, on Debian"
            " postgresql-server-dev-15"
        )
    return found or str(candidates[-1])


async def _isolationtester(program: str, address: Address, script: Script, patience: float) -> tuple[int, float]:
    """Permutations finished and the seconds they took; it is ended when its time is over."""
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        program,
        address.dsn(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(script.as_spec().encode())
    process.stdin.close()
    started = 0
    try:
        async with asyncio.timeout(patience):
            async for line in process.stdout:
                started += line.startswith(b"starting permutation")
            code = await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
        await _clear(address, script)
        return max(started - 1, 0), time.monotonic() - began
    if code:
        assert process.stderr is not None
        said = (await process.stderr.read()).decode(errors="replace").strip()
        raise EnvironmentFailed(f"isolationtester ended with {code}: {said[-400:]}")
    return started, time.monotonic() - began


async def _clear(address: Address, script: Script) -> None:
    """Take away what an ended isolationtester left."""
    import psycopg

    async with await psycopg.AsyncConnection.connect(address.dsn(), autocommit=True) as connection:
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"
        )
        with contextlib.suppress(psycopg.errors.UndefinedTable):
            await connection.execute(script.teardown.encode())


async def _explorer(address: Address, script: Script) -> tuple[Tally, float]:
    began = time.monotonic()
    async with SessionStage(address, script) as stage:
        tally = await Explorer(stage, reduce=False).run(
            lambda _: True, lambda: time.monotonic() - began < BUDGET_SECONDS
        )
        return tally, time.monotonic() - began


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
