"""Fifty claimers, killed at random, on tenants of cap three: never more than three running, and hardly ever fewer.

Run as ``python tests/soak_tenants.py [JOBS]``; prints one JSON document, exits 1 when a cap was broken, not used, or a job got
lost. What is true is told by a trigger of our own on the job table, and by snapshots; not by the queue's counters.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from harness.postgres.cluster import open_cluster  # noqa: E402 - run as a script, the folder must be found first
from harness.postgres.options import parse_server  # noqa: E402
from harness.processes.watchdog import Watchdog  # noqa: E402
from reference_queue.sessions import prepare  # noqa: E402
from reference_queue.statements import Statements, schema  # noqa: E402

CAP = 3
TRUTH = (
    "create table truth (n bigint generated always as identity, at timestamptz not null, tenant text not null, step int not null)",
    """
    create function tell_truth() returns trigger language plpgsql as $$
    begin
        insert into truth (at, tenant, step)
        values (clock_timestamp(), new.tenant, case when new.state = 'running' then 1 else -1 end);
        return null;
    end $$
    """,
    # After the row and its unique entries are written: a grant is told after the end that it waited for was committed.
    """
    create trigger tell_truth after update of state on queue_job for each row
    when ((old.state = 'running') is distinct from (new.state = 'running')) execute function tell_truth()
    """,
)


@dataclass(frozen=True)
class Plan:
    """How large a soak is. ``hold`` is how long a job runs, at least and at most."""

    jobs: int = 10_000
    tenants: int = 10
    processes: int = 10
    claimers_each: int = 5
    hold_seconds: tuple[float, float] = (0.3, 0.6)
    lease_seconds: float = 2.0
    kill_every_seconds: tuple[float, float] = (2.0, 5.0)
    longest_seconds: float = 290.0
    seed: int = 1


@dataclass(frozen=True)
class Found:
    """What a soak found."""

    claimers: int
    jobs: int
    done: int
    kills: int
    takeovers: int
    most_running_by_trigger: int
    most_running_by_snapshot: int
    used: float  # share of the permits' time, while jobs were waiting, in which they were held
    used_by_tenant: dict[str, float]
    held_by_the_killed: float  # share of it that a permit was held for a worker that was dead
    inconsistencies: int
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether the cap held and was used, and everything was done."""
        at_most = max(self.most_running_by_trigger, self.most_running_by_snapshot)
        return self.done == self.jobs and at_most == CAP and self.used >= 0.95 and self.inconsistencies == 0


# --- a claimer ------------------------------------------------------------------------------------------------------


def claim_for_ever(name: str, dsn: str, plan: Plan) -> None:
    """Claim a job of some tenant, hold it, complete it. Takeovers of what the killed have left come before claims."""
    chance = random.Random(name)
    texts = Statements()
    common = {"kinds": ["default"], "worker": name, "lease": f"{plan.lease_seconds} s"}
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as connection:
        prepare(connection)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        next_takeover = 0.0
        while True:
            rows: list[DictRow] = []
            with contextlib.suppress(psycopg.errors.UniqueViolation):  # another one was quicker to this permit
                if time.monotonic() >= next_takeover:
                    next_takeover = time.monotonic() + plan.lease_seconds / 4
                    text = texts.text("takeover", 1)
                    rows = connection.execute(text, {**common, "held": []}, prepare=True).fetchall()
                if not rows:
                    text = texts.text("claim_of_tenants", 1)
                    rows = connection.execute(text, common, prepare=True).fetchall()
            if not rows:
                time.sleep(chance.uniform(0.05, 0.15))  # as an idle worker polls
            for row in rows:
                time.sleep(chance.uniform(*plan.hold_seconds))
                guard = {"id": row["id"], "version": row["version"], "worker": name}
                values = {**guard, "remote_id": None, "reason": "completed"}
                connection.execute(texts.text("complete"), values, prepare=True)


def claimers(name: str, dsn: str, plan: Plan) -> None:
    """One process of claimers. It ends by being killed."""
    threads = [
        threading.Thread(target=claim_for_ever, args=(f"{name}.{number}", dsn, plan), daemon=True)
        for number in range(plan.claimers_each)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Crowd:
    """The processes of claimers."""

    def __init__(self, dsn: str, plan: Plan, watchdog: Watchdog) -> None:
        self._dsn = dsn
        self._plan = plan
        self._watchdog = watchdog
        self._started = 0
        self._alive: list[subprocess.Popen[str]] = []
        self.kills = 0

    def start(self) -> subprocess.Popen[str]:
        """One more."""
        self._started += 1
        process = subprocess.Popen(
            [sys.executable, __file__, "claimers", f"p{self._started}", self._dsn, json.dumps(asdict(self._plan))],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, **self._watchdog.mark},
        )
        self._watchdog.watch_group(process.pid)
        self._alive.append(process)
        return process

    def start_all(self) -> None:
        """Return when every claimer has its connection."""
        for process in [self.start() for _ in range(self._plan.processes)]:
            assert process.stdout is not None
            for _ in range(self._plan.claimers_each):
                assert process.stdout.readline() == "ready\n", "a process of claimers ended before it began"

    def kill_one(self, chance: random.Random) -> None:
        """SIGKILL, and another one takes its place."""
        self._end(self._alive.pop(chance.randrange(len(self._alive))))
        self.kills += 1
        self.start()

    def end(self) -> None:
        """Kill all that are left."""
        while self._alive:
            self._end(self._alive.pop())

    def _end(self, process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGKILL)
        process.wait(10)
        if process.stdout is not None:
            process.stdout.close()


# --- the soak -------------------------------------------------------------------------------------------------------


def soak(dsn: str, watchdog: Watchdog, plan: Plan) -> Found:
    """Install, let them claim, kill at random, and judge by the truth."""
    chance = random.Random(plan.seed)
    with psycopg.connect(dsn, autocommit=True, row_factory=dict_row) as connection:
        for statement in (*(text for _, text in schema()), *TRUTH):
            connection.execute(statement)
        for number in range(plan.tenants):
            values = {"tenant_name": f"t{number}", "most_running": CAP}
            connection.execute(Statements().text("set_tenant"), values)
        crowd = Crowd(dsn, plan, watchdog)
        try:
            crowd.start_all()
            began = time.monotonic()
            _enqueue(connection, plan)
            most = 0
            next_kill = began + chance.uniform(*plan.kill_every_seconds)
            while _unfinished(connection) and time.monotonic() - began < plan.longest_seconds:
                most = max(most, _running_now(connection))
                if time.monotonic() >= next_kill:
                    crowd.kill_one(chance)
                    next_kill = time.monotonic() + chance.uniform(*plan.kill_every_seconds)
                time.sleep(0.02)
            seconds = time.monotonic() - began
        finally:
            crowd.end()
        return _judge(connection, plan, crowd, most, seconds)


def _enqueue(connection: psycopg.Connection[DictRow], plan: Plan) -> None:
    with connection.transaction():
        connection.execute(
            "insert into queue_job (operation_key, tenant, max_attempts)"
            " select 'job ' || n, 't' || n %% %(tenants)s, 1000 from generate_series(1, %(jobs)s) as n",
            {"tenants": plan.tenants, "jobs": plan.jobs},
        )
        connection.execute(
            "insert into queue_audit (job_id, to_state, version, reason) select id, state, version, 'enqueued' from queue_job"
        )
    connection.execute("vacuum (analyze) queue_job")


def _unfinished(connection: psycopg.Connection[DictRow]) -> bool:
    text = "select 1 from queue_job where state in ('pending', 'retry', 'running') limit 1"
    return connection.execute(text).fetchone() is not None


def _running_now(connection: psycopg.Connection[DictRow]) -> int:
    text = "select tenant, count(*) as jobs from queue_job where state = 'running' group by tenant"
    return max((row["jobs"] for row in connection.execute(text)), default=0)


def _judge(connection: psycopg.Connection[DictRow], plan: Plan, crowd: Crowd, most_seen: int, seconds: float) -> Found:
    most: Counter[str] = Counter()
    used = {}
    steps: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for row in connection.execute(
        "select extract(epoch from at)::float8 as at, tenant, step from truth order by at, n"
    ):
        steps[row["tenant"]].append((row["at"], row["step"]))
    for tenant, told in steps.items():
        most[tenant], used[tenant] = occupied(told)
    counts: dict[str, Any] = connection.execute(
        "select count(*) filter (where state = 'done') as done,"
        " (select count(*) from queue_audit where reason like 'taken over%') as takeovers from queue_job"
    ).fetchone()  # type: ignore[assignment]
    dead = connection.execute(
        # From a grant of a killed worker to the takeover of it: at most the lease and the time to the next look.
        "select coalesce(sum(extract(epoch from later.at - earlier.at)), 0)::float8 as seconds"
        " from queue_audit as later join queue_audit as earlier"
        " on earlier.job_id = later.job_id and earlier.version = later.version - 1 and earlier.to_state = 'running'"
        " where later.reason like 'taken over%'"
    ).fetchone()
    assert dead is not None
    return Found(
        claimers=plan.processes * plan.claimers_each,
        jobs=plan.jobs,
        done=counts["done"],
        kills=crowd.kills,
        takeovers=counts["takeovers"],
        most_running_by_trigger=max(most.values()),
        most_running_by_snapshot=most_seen,
        used=round(sum(used.values()) / len(used), 4),
        used_by_tenant={tenant: round(share, 4) for tenant, share in sorted(used.items())},
        held_by_the_killed=round(dead["seconds"] / (CAP * plan.tenants * seconds), 4),
        inconsistencies=len(connection.execute(Statements().text("consistent")).fetchall()),
        seconds=round(seconds, 1),
    )


def occupied(steps: list[tuple[float, int]]) -> tuple[int, float]:
    """The most at once, and the share of the permits' time that was used until the last job was granted."""
    last_grant = max(at for at, step in steps if step > 0)
    running, most, held, before = 0, 0, 0.0, steps[0][0]
    for at, step in steps:
        held += running * (min(at, last_grant) - min(before, last_grant))
        running, before = running + step, at
        most = max(most, running)
    return most, held / (CAP * (last_grant - steps[0][0]))


@contextlib.contextmanager
def server() -> Iterator[tuple[str, Watchdog]]:
    """A database of our own on a server of our own."""
    with (
        tempfile.TemporaryDirectory(prefix="queueproof-soak-") as folder,
        Watchdog() as watchdog,
        asyncio.Runner() as runner,
    ):
        opened = open_cluster(parse_server("embedded"), watchdog, Path(folder))
        cluster = runner.run(opened.__aenter__())
        try:
            yield runner.run(cluster.create_database("soak")).dsn(), watchdog
        finally:
            runner.run(opened.__aexit__(None, None, None))


def main() -> int:
    """Play it once."""
    if sys.argv[1:2] == ["claimers"]:
        name, dsn, plan = sys.argv[2:]
        claimers(name, dsn, Plan(**json.loads(plan)))
        return 0
    with server() as (dsn, watchdog):
        found = soak(dsn, watchdog, Plan(jobs=int(sys.argv[1])) if sys.argv[1:] else Plan())
    sys.stdout.write(json.dumps({**asdict(found), "holds": found.holds}, indent=2) + "\n")
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
