"""What a state change costs: never the payload, and the same index scan however many jobs are finished."""

import statistics

import pytest

from reference_queue.statements import Statements
from tests.integration.reference_queue.conftest import Queue

CLAIM = {"kinds": ["default"], "worker": "w", "lease": "1h"}


def wal_bytes_of_a_run(queue: Queue, key: str) -> int:
    begin = queue.run("select pg_current_wal_insert_lsn()::text as at")[0]["at"]
    (row,) = queue.claim()
    assert row["operation_key"] == key
    queue.named("mark_calling", id=row["id"], version=1, worker="w")
    queue.named("renew", ids=[row["id"]], versions=[1], worker="w", lease="1h", longest_run="2h")
    queue.named("complete", id=row["id"], version=1, worker="w", remote_id=None, reason="completed")
    return int(queue.run("select pg_current_wal_insert_lsn() - %(b)s::pg_lsn as bytes", {"b": begin})[0]["bytes"])


def test_wal_per_state_change_does_not_grow_with_the_payload(queue: Queue) -> None:
    sizes = {"small": 100, "large": 1_000_000}
    measured: dict[str, list[int]] = {name: [] for name in sizes}
    for number in range(12):
        for name, size in sizes.items():
            queue.enqueue(f"{name}{number}", body=f'"{"x" * size}"')
    for number in range(12):
        for name in sizes:
            measured[name].append(wal_bytes_of_a_run(queue, f"{name}{number}"))
    # The median: a page's first change after a checkpoint is logged as a whole, whoever makes it.
    assert statistics.median(measured["large"]) <= 1.1 * statistics.median(measured["small"])


def test_heartbeats_and_phase_changes_stay_on_their_page(queue: Queue) -> None:
    queue.enqueue("k")
    (row,) = queue.claim()
    queue.run("select pg_stat_force_next_flush()")
    before = queue.run(
        "select n_tup_upd as all, n_tup_hot_upd as hot from pg_stat_user_tables where relname = 'queue_job'"
    )[0]
    for _ in range(10):
        queue.named("renew", ids=[row["id"]], versions=[1], worker="w", lease="1h", longest_run="2h")
        queue.named("mark_calling", id=row["id"], version=1, worker="w")
    queue.run("select pg_stat_force_next_flush()")
    after = queue.run(
        "select n_tup_upd as all, n_tup_hot_upd as hot from pg_stat_user_tables where relname = 'queue_job'"
    )[0]
    assert (after["all"] - before["all"], after["hot"] - before["hot"]) == (20, 20)


@pytest.mark.parametrize(
    ("statement", "index"),
    [("claim", "queue_job_due"), ("claim_overdue", "queue_job_overdue"), ("takeover", "queue_job_running")],
)
def test_the_plan_at_production_like_ratios_is_an_index_scan(queue: Queue, statement: str, index: str) -> None:
    """98 % done, 1 % pending, 0.1 % running; the plan that a prepared statement ends up with."""
    queue.run(
        "insert into queue_job (operation_key, state, attempts, worker_id, lease_until, run_at)"
        " select n::text, case when n % 100 = 0 then 'pending' when n % 1000 = 1 then 'running' else 'done' end,"
        " case when n % 100 = 0 then 0 else 1 end, 'w', case when n % 1000 = 1 and n % 100 <> 0 then now() - interval '1s' end,"
        " now() - interval '1 day' from generate_series(1, 50000) as n"
    )
    queue.run(
        "insert into queue_audit (job_id, to_state, version, reason) select id, state, version, 'test' from queue_job"
    )
    queue.run("vacuum analyze queue_job")
    queue.run("set plan_cache_mode = force_generic_plan")
    text = "explain (analyze, buffers, format json) " + Statements().text(statement, 1)
    with queue.connection.transaction(force_rollback=True):
        (plan,) = queue.connection.execute(text, {**CLAIM, "held": [], "overdue": "1 hour"}, prepare=True).fetchall()
    told = str(plan["QUERY PLAN"])
    assert f"'Index Name': '{index}'" in told
    assert "Seq Scan" not in told
    assert plan["QUERY PLAN"][0]["Plan"]["Shared Hit Blocks"] < 200
