"""Retention beside claims, the shadow's comparison, the connection budget and the advice on leases."""

import datetime as dt

import psycopg
import pytest

from reference_queue import rollout
from reference_queue.retention import retain
from reference_queue.worker import sessions_for
from tests.integration.reference_queue.conftest import Queue

MONTH = dt.timedelta(days=30)


def finish(queue: Queue, count: int, days_ago: int) -> None:
    for number in range(count):
        queue.enqueue(f"d{days_ago}-{number}", body='{"secret": 1}')
        (row,) = queue.claim()
        queue.named("complete", id=row["id"], version=1, worker="w", remote_id=f"R{number}", reason="completed")
    queue.run(
        "update queue_job set finished_at = now() - make_interval(days => %(d)s) where operation_key like %(k)s",
        {"d": days_ago, "k": f"d{days_ago}-%"},
    )


def test_old_finished_jobs_are_archived_with_their_audit_and_nothing_else_is_touched(queue: Queue) -> None:
    finish(queue, 25, 40)
    finish(queue, 3, 1)
    queue.enqueue("old but pending", run_at="2001-01-01T00:00:00Z")
    steps = list(retain(queue.connection, MONTH, batch=10, pause_seconds=0))
    assert sum(step.deleted for step in steps) == 25
    assert max(step.deleted for step in steps) <= 10
    archived = queue.run("select * from queue_archive order by job_id")
    assert len(archived) == 25
    assert [entry["to_state"] for entry in archived[0]["audit"]] == ["pending", "running", "done"]
    assert "secret" not in str(archived)
    assert queue.run("select count(*) as n from queue_job") == [{"n": 4}]
    assert queue.run("select count(*) as n from queue_payload") == [{"n": 3}]
    assert queue.run("select count(*) as n from queue_audit where job_id <= 25") == [{"n": 0}]


def test_interrupted_it_goes_on_where_it_was(queue: Queue) -> None:
    finish(queue, 25, 40)
    steps = retain(queue.connection, MONTH, batch=10, pause_seconds=0)
    first = next(steps)
    steps.close()
    rest = list(retain(queue.connection, MONTH, batch=10, after=first.last or 0, pause_seconds=0))
    assert first.deleted + sum(step.deleted for step in rest) == 25


def test_a_locked_row_does_not_hold_it_up_and_it_holds_up_no_claim(queue: Queue) -> None:
    finish(queue, 5, 40)
    queue.enqueue("due")
    with psycopg.connect(queue.dsn) as other:
        other.execute("select 1 from queue_job where operation_key = 'd40-2' for update")
        assert sum(step.deleted for step in retain(queue.connection, MONTH, pause_seconds=0)) == 4
    queue.run("begin")
    assert sum(step.deleted for step in retain(queue.connection, MONTH, pause_seconds=0)) == 1
    with psycopg.connect(queue.dsn, autocommit=True) as other:
        other.execute("set lock_timeout = '1s'")
        claimed = other.execute("select 1 from queue_job where state = 'pending' for update skip locked").fetchall()
    queue.run("commit")
    assert len(claimed) == 1


def test_outside_its_hours_it_does_nothing(queue: Queue) -> None:
    finish(queue, 2, 40)
    (now,) = queue.run("select localtime as now")
    hour = (dt.datetime.combine(dt.date(2000, 1, 2), now["now"]) + dt.timedelta(hours=2)).time()
    later = (dt.datetime.combine(dt.date(2000, 1, 2), now["now"]) + dt.timedelta(hours=4)).time()
    assert list(retain(queue.connection, MONTH, hours=(hour, later))) == []
    assert sum(step.deleted for step in retain(queue.connection, MONTH, hours=(later, hour), pause_seconds=0)) == 2


def test_the_shadow_reports_every_difference_and_claims_nothing(queue: Queue) -> None:
    for number in range(4):
        queue.enqueue(f"k{number}", priority=number)
    queue.run("create table old_queue (key text, place int)")
    queue.run("insert into old_queue values ('k0', 1), ('k2', 2), ('k1', 3), ('only old', 4)")
    found = rollout.shadow(queue.connection, "select key from old_queue order by place")
    assert (found.only_here, found.only_there, found.first_out_of_order) == (("k3",), ("only old",), (2, "k1", "k2"))
    assert not found.agrees
    assert rollout.shadow(queue.connection, "select operation_key from queue_job order by priority").agrees
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        rollout.shadow(queue.connection, "delete from queue_job returning operation_key")
    assert queue.run("select distinct state from queue_job") == [{"state": "pending"}]


def test_the_connection_budget_refuses_what_would_not_fit(queue: Queue) -> None:
    assert rollout.budget(queue.connection, 1, 1) is None
    refusal = rollout.budget(queue.connection, 1000, 16)
    assert refusal is not None
    assert f"up to {1000 * (sessions_for(16) + 1)} connections" in refusal


def test_a_lease_is_recommended_from_what_was_measured(queue: Queue) -> None:
    finish(queue, 5, 0)
    (row,) = rollout.durations(queue.connection, "1 day")
    assert (row["kind"], row["attempts"]) == ("default", 5)
    advice = rollout.recommend_lease(p99_seconds=8, pause_seconds=1, attempts=5)
    assert advice.lease_seconds == 12
    assert advice.heartbeat_seconds <= advice.lease_seconds / 2
    assert rollout.recommend_lease(0.01, 5, 5).lease_seconds == 30
    assert rollout.longest_pause(queue.connection, 0.05) >= 0
