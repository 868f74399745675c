"""A worker in unfriendly surroundings: stricter isolation, lost notifications, blocked statements; and what it tells of itself."""

import asyncio
import time
import urllib.request
from pathlib import Path

import psycopg
import pytest

from reference_queue.database_work import work_one
from reference_queue.sessions import Conflict, NothingHappened, Sessions, Unknown
from tests.integration.reference_queue.conftest import Outside, Queue, Workers


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_two_workers_under_stricter_isolation_lose_and_double_nothing(
    queue: Queue, outside: Outside, workers: Workers, isolation: str
) -> None:
    """Zoo B07: the role's setting makes each of their statements meet 40001; that is tried again, never given up on."""
    outside.behave = lambda _key: (0.02, 200)
    for number in range(60):
        queue.enqueue(f"k{number}")
    level = f"-c default_transaction_isolation={isolation.replace(' ', chr(92) + ' ')}"
    for name in ("w1", "w2"):
        workers.start(name, QUEUEPROOF_SLOTS="4", PGOPTIONS=level)
    queue.until(lambda: not queue.run("select 1 from queue_job where state <> 'done'"), "all done", 30)
    assert sorted(key for key, _ in outside.calls) == sorted(f"k{number}" for number in range(60))
    assert queue.run("select max(version) as most from queue_job") == [{"most": 1}]


def test_a_notification_wakes_a_worker_and_losing_all_of_them_loses_nothing(
    queue: Queue, outside: Outside, workers: Workers
) -> None:
    workers.start(QUEUE_POLL="3s", QUEUE_LEASE="60s", QUEUE_HEARTBEAT="20s")
    listening = (
        "select 1 from pg_stat_activity where application_name = 'reference-queue w1 beat' and query like 'listen%%'"
    )
    queue.until(lambda: bool(queue.run(listening, {})), "listening")
    time.sleep(1.5)  # by now it waits for longer than a second between two looks
    queue.enqueue("hinted")
    queue.named("wake")
    began = time.monotonic()
    queue.until_state("hinted", "done")
    assert time.monotonic() - began < 0.7
    time.sleep(1.5)
    queue.enqueue("unhinted")
    began = time.monotonic()
    queue.until_state("unhinted", "done")
    assert time.monotonic() - began < 3.7


def test_one_blocked_result_holds_up_neither_other_jobs_nor_heartbeats(
    queue: Queue, outside: Outside, workers: Workers
) -> None:
    outside.behave = lambda key: (0.5 if key == "blocked" else 0.0, 200)
    queue.enqueue("blocked", priority=-1)
    workers.start(QUEUEPROOF_SLOTS="2")
    queue.until(lambda: bool(outside.calls), "the call")
    with psycopg.connect(queue.dsn) as other:
        other.execute("select 1 from queue_job where operation_key = 'blocked' for update")
        for number in range(10):
            queue.enqueue(f"k{number}")
        queue.until(
            lambda: not queue.run("select 1 from queue_job where state <> 'done' and operation_key <> 'blocked'"),
            "the others",
        )
        assert queue.job("blocked")["state"] == "running"
    queue.until_state("blocked", "done")


def test_a_handler_that_blocks_the_event_loop_keeps_its_lease(
    queue: Queue, outside: Outside, workers: Workers, tmp_path: Path
) -> None:
    """Zoo B30: two lease times without a turn of the loop; the heartbeat's thread renews all the same."""
    (tmp_path / "blocking_handlers.py").write_text(
        "import contextlib, time\n"
        "from reference_queue.decisions import Recovery\n"
        "from reference_queue.handlers import Done, Handler\n"
        "async def call(job):\n    time.sleep(2.5)\n    return Done()\n"
        "@contextlib.asynccontextmanager\n"
        "async def handlers():\n    yield {'default': Handler(call=call, recovery=Recovery.REPLAY)}\n"
    )
    queue.enqueue("k")
    for name in ("w1", "w2"):
        workers.start(name, QUEUE_HANDLERS="blocking_handlers:handlers", PYTHONPATH=str(tmp_path))
    job = queue.until_state("k", "done")
    assert (job["version"], job["renewals"] > 5) == (1, True)


def test_a_worker_tells_what_it_did(queue: Queue, outside: Outside, workers: Workers) -> None:
    outside.behave = lambda key: (0.0, 422 if key == "bad" else 200)
    for key in ("a", "b", "bad"):
        queue.enqueue(key)
    workers.start(QUEUE_METRICS_PORT="0")
    queue.until(lambda: not queue.run("select 1 from queue_job where state not in ('done', 'dead')"), "all ended")
    port = workers.log().split("metrics port=")[1].split()[0]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    assert "reference_queue_completed_jobs_total 2\n" in text
    assert 'reference_queue_failures_total{class="content"} 1\n' in text
    assert 'reference_queue_claimed_jobs_total{statement="claim"} 3\n' in text
    assert "reference_queue_orphans 0\n" in text
    assert "reference_queue_skipped_rows_estimate 0\n" in text


def test_locked_rows_are_estimated_and_orphans_and_ages_are_seen(queue: Queue) -> None:
    for number in range(3):
        queue.enqueue(f"k{number}", run_at="2020-01-01T00:00:00Z")
    queue.claim(lease="0s")
    with psycopg.connect(queue.dsn) as other:
        other.execute("select 1 from queue_job where operation_key = 'k1' for update")
        assert queue.named("estimate_skipped") == [{"locked": 1}]
    rows = {row["metric"]: row["value"] for row in queue.named("metrics")}
    assert rows["age"] > 1e8
    assert (rows["orphans"], rows["backlog"]) == (1, 3)
    assert [row["operation_key"] for row in queue.run("select * from queue_orphans")] == ["k0"]
    assert queue.run("select claims from queue_progress") == [{"claims": 1}]


def test_a_session_tells_nothing_happened_from_unknown(queue: Queue) -> None:
    async def story() -> None:
        sessions = Sessions(queue.dsn, "t", 2, deadline_seconds=0.5)
        with pytest.raises(Unknown):
            await sessions.run("select pg_terminate_backend(pg_backend_pid())", {})
        with pytest.raises(Unknown):  # no answer in time
            await sessions.run("select pg_sleep(5)", {})
        with pytest.raises(Conflict):
            await sessions.run("insert into queue_job (operation_key) select 'k' from generate_series(1, 2)", {})
        with pytest.raises(psycopg.errors.UndefinedTable):
            await sessions.run("select 1 from nothing", {})
        assert await sessions.run("select 1 as one", {}) == [{"one": 1}]
        await sessions.close()
        nowhere = Sessions("host=127.0.0.1 port=1", "t", 1, deadline_seconds=2)
        with pytest.raises(NothingHappened):
            await nowhere.run("select 1", {})

    asyncio.run(story())


def test_database_work_happens_with_its_claim_or_not_at_all(queue: Queue) -> None:
    queue.run("create table ledger (entry text)")
    queue.enqueue("k", body='{"entry": "x"}')

    def write(connection: psycopg.Connection, grant: object, payload: dict) -> None:
        connection.execute("insert into ledger values (%s)", (payload["entry"],))

    def write_and_break(connection: psycopg.Connection, grant: object, payload: dict) -> None:
        write(connection, grant, payload)
        connection.execute("select 1 / 0")

    with pytest.raises(psycopg.errors.DivisionByZero):
        work_one(queue.connection, "w", ["default"], write_and_break)
    job = queue.job("k")
    assert (job["state"], job["last_error_class"], job["last_error_code"]) == ("dead", "content", "22012")
    assert queue.run("select * from ledger") == []
    queue.enqueue("k2", body='{"entry": "y"}')
    grant = work_one(queue.connection, "w", ["default"], write)
    assert grant is not None
    assert queue.job("k2")["state"] == "done"
    assert queue.run("select * from ledger") == [{"entry": "y"}]
    assert work_one(queue.connection, "w", ["default"], write) is None
