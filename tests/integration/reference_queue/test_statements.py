"""Each statement of the protocol on a real server, with the sessions and the waits that can make it go wrong."""

import contextlib
import secrets
import threading

import psycopg
import pytest
from psycopg.rows import dict_row

from reference_queue.statements import packaged
from tests.integration.reference_queue.conftest import Queue

GUARDED = {
    "complete": {"remote_id": None, "reason": "completed"},
    "mark_calling": {},
    "record_result": {"phase": "result_obtained", "remote_id": "r1"},
    "fail": {
        "outcome": "retry",
        "absent": False,
        "error_class": "system",
        "error_code": None,
        "error_reason": "It failed.",
        "response_id": None,
        "base": "1s",
        "cap": "60s",
        "jitter": 0.0,
    },
}


def guarded(queue: Queue, name: str, grant: dict, **changes: object) -> list:
    values = {"id": grant["id"], "version": grant["version"], "worker": "w", **GUARDED[name], **changes}
    return queue.named(name, **values)


def age(queue: Queue, key: str, seconds: float) -> None:
    """Let time pass for one row."""
    queue.run(
        "update queue_job set lease_until = lease_until - make_interval(secs => %(s)s), granted_at = granted_at"
        " - make_interval(secs => %(s)s), run_at = run_at - make_interval(secs => %(s)s) where operation_key = %(k)s",
        {"s": seconds, "k": key},
    )


def test_a_claim_returns_its_batch_in_the_declared_order(queue: Queue) -> None:
    for key, priority in (("c", 3), ("a", 1), ("b2", 2), ("b1", 2), ("min", -(2**31)), ("max", 2**31 - 1)):
        queue.enqueue(key, priority=priority)
    assert [row["operation_key"] for row in queue.claim(batch=5)] == ["min", "a", "b2", "b1", "c"]
    assert [row["operation_key"] for row in queue.claim(batch=5)] == ["max"]
    assert queue.claim() == []


def test_a_claim_takes_what_is_due_by_the_databases_clock_whatever_the_zone_it_was_said_in(queue: Queue) -> None:
    queue.enqueue("past", run_at="2000-01-01 12:00:00+14")
    queue.enqueue("far", run_at="2100-01-01 00:00:00-11")
    queue.run("set timezone = 'Asia/Kolkata'")
    assert [row["operation_key"] for row in queue.claim(batch=5)] == ["past"]


def test_two_claimers_never_wait_for_each_other(queue: Queue) -> None:
    queue.enqueue("k1")
    queue.enqueue("k2")
    with psycopg.connect(queue.dsn, row_factory=dict_row) as other:
        other.execute("select 1 from queue_job where operation_key = 'k1' for update")
        assert [row["operation_key"] for row in queue.claim(batch=10)] == ["k2"]
        other.rollback()
    assert [row["operation_key"] for row in queue.claim(batch=10)] == ["k1"]


def test_a_plan_made_when_the_queue_was_empty_marks_no_more_than_it_returns(queue: Queue) -> None:
    queue.run("analyze queue_job")
    for number in range(50):
        queue.enqueue(f"k{number}")
    assert len(queue.claim()) == 1
    assert queue.run("select count(*) from queue_job where state = 'running'") == [{"count": 1}]


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize("changes", [{"version": 0}, {"version": 2}, {"worker": "another"}], ids=str)
def test_a_write_that_is_not_the_holders_changes_nothing(queue: Queue, name: str, changes: dict) -> None:
    queue.enqueue("k")
    (grant,) = queue.claim()
    before = queue.job("k")
    assert guarded(queue, name, grant, **changes) == []
    assert queue.job("k") == before


@pytest.mark.parametrize("name", GUARDED)
def test_a_write_after_the_end_changes_nothing(queue: Queue, name: str) -> None:
    queue.enqueue("k")
    (grant,) = queue.claim()
    assert guarded(queue, "complete", grant)
    before = queue.job("k")
    assert guarded(queue, name, grant) == []
    assert queue.job("k") == before


@pytest.mark.parametrize("name", ["complete", "fail", "record_result"])
def test_a_result_after_the_leases_end_counts_as_long_as_nobody_took_over(queue: Queue, name: str) -> None:
    queue.enqueue("k")
    (grant,) = queue.claim()
    age(queue, "k", 11)
    assert len(guarded(queue, name, grant)) == 1


def test_no_call_begins_once_the_lease_is_over(queue: Queue) -> None:
    queue.enqueue("k")
    (grant,) = queue.claim()
    age(queue, "k", 11)
    assert guarded(queue, "mark_calling", grant) == []


def renew(queue: Queue, grants: list, worker: str = "w", longest_run: str = "1h") -> dict[int, str]:
    rows = queue.named(
        "renew",
        ids=[grant["id"] for grant in grants],
        versions=[grant["version"] for grant in grants],
        worker=worker,
        lease="10s",
        longest_run=longest_run,
    )
    return {row["id"]: row["fate"] for row in rows}


def test_a_heartbeat_says_what_became_of_each_job(queue: Queue) -> None:
    for key in ("fine", "done", "late", "locked", "taken"):
        queue.enqueue(key)
    grants = {row["operation_key"]: row for row in queue.claim(batch=5)}
    guarded(queue, "complete", grants["done"])
    age(queue, "late", 11)
    age(queue, "taken", 12)
    with psycopg.connect(queue.dsn) as other:
        other.execute("select 1 from queue_job where operation_key in ('locked', 'late') for update")
        assert [row["operation_key"] for row in queue.claim(worker="heir", name="takeover", batch=5)] == ["taken"]
        other.execute("select 1 from queue_job where operation_key = 'late'")
        fates = renew(queue, list(grants.values()))
        assert fates[grants["locked"]["id"]] == "busy"
    fates = renew(queue, list(grants.values()))
    names = {key: fates[grant["id"]] for key, grant in grants.items()}
    assert names == {"fine": "renewed", "done": "lost", "late": "over", "locked": "renewed", "taken": "lost"}


def test_a_renewal_that_waited_on_its_way_does_not_carry_a_lease_over_its_end(queue: Queue) -> None:
    queue.enqueue("k")
    (grant,) = queue.claim(lease="300ms")
    with psycopg.connect(queue.dsn) as slow:
        slow.execute("begin")
        slow.execute("select now()")
        slow.execute("select pg_sleep(0.4)")  # now() stays before the lease's end
        values = {"ids": [grant["id"]], "versions": [1], "worker": "w", "lease": "10s", "longest_run": "1h"}
        assert slow.execute(packaged("renew"), values).fetchall() == [(grant["id"], "over")]


def test_no_lease_is_renewed_beyond_the_longest_run(queue: Queue) -> None:
    queue.enqueue("k")
    grants = queue.claim()
    assert set(renew(queue, grants, longest_run="12s").values()) == {"renewed"}
    assert queue.run("select lease_until - granted_at <= interval '12s' as bounded from queue_job") == [
        {"bounded": True}
    ]
    assert set(renew(queue, grants, longest_run="10s").values()) == {"over"}


@pytest.mark.parametrize(
    ("phase", "attempts", "recoveries", "state", "may_call"),
    [
        ("not_called", 1, 0, "running", True),
        ("call_unknown", 2, 0, "running", True),
        ("result_obtained", 1, 0, "running", True),
        ("not_called", 3, 0, "dead", False),
        ("call_unknown", 3, 0, "running", False),
        ("confirming", 3, 2, "running", False),
        ("call_unknown", 3, 3, "reconcile", False),
        ("result_obtained", 3, 3, "reconcile", False),
    ],
)
def test_a_takeover_acts_on_the_phase(
    queue: Queue, phase: str, attempts: int, recoveries: int, state: str, may_call: bool
) -> None:
    queue.enqueue("k")
    queue.claim(lease="0s")
    queue.run(
        "update queue_job set phase = %(p)s, attempts = %(a)s, recoveries = %(r)s",
        {"p": phase, "a": attempts, "r": recoveries},
    )
    (row,) = queue.claim(worker="heir", name="takeover")
    assert (row["state"], row["may_call"], row["phase"]) == (state, may_call, phase)
    job = queue.job("k")
    granted = state == "running"
    assert job["version"] == (2 if granted else 1)
    assert job["attempts"] == min(attempts + 1, 3)
    assert job["worker_id"] == ("heir" if granted else "w")


def test_a_takeover_waits_for_the_leases_end_and_is_never_from_oneself(queue: Queue) -> None:
    queue.enqueue("k")
    (grant,) = queue.claim()
    assert queue.claim(worker="heir", name="takeover") == []
    age(queue, "k", 11)
    assert queue.claim(name="takeover", held=[grant["id"]]) == []
    assert len(queue.claim(name="takeover")) == 1


def test_what_was_not_started_goes_back_and_costs_no_attempt(queue: Queue) -> None:
    for key in ("fresh", "again", "gone"):
        queue.enqueue(key)
    grants = queue.claim(batch=3)
    queue.run("update queue_job set attempts = 2 where operation_key = 'again'")
    guarded(queue, "complete", grants[2])
    values = {"worker": "w", "reason": "shut down", "ids": [row["id"] for row in grants], "versions": [1, 1, 1]}
    assert len(queue.named("release", **{**values, "worker": "another"})) == 0
    assert len(queue.named("release", **values)) == 2
    assert [(queue.job(key)["state"], queue.job(key)["attempts"]) for key in ("fresh", "again", "gone")] == [
        ("pending", 0),
        ("retry", 1),
        ("done", 1),
    ]


@pytest.mark.parametrize(
    ("phase", "absent", "state"),
    [("not_called", False, "dead"), ("call_unknown", True, "dead"), ("call_unknown", False, "reconcile")],
)
def test_the_last_failure_ends_a_job_by_what_is_known_of_its_effect(
    queue: Queue, phase: str, absent: bool, state: str
) -> None:
    queue.enqueue("k", max_attempts=1)
    (grant,) = queue.claim()
    queue.run("update queue_job set phase = %(p)s", {"p": phase})
    assert guarded(queue, "fail", grant, absent=absent)[0]["state"] == state


def test_a_retrys_wait_doubles_up_to_its_cap(queue: Queue) -> None:
    queue.enqueue("k", max_attempts=9)
    waits = []
    for _ in range(6):
        (grant,) = queue.claim()
        guarded(queue, "fail", grant, cap="10s")
        (row,) = queue.run("select extract(epoch from run_at - updated_at)::float8 as seconds from queue_job")
        waits.append(round(row["seconds"]))
        assert queue.claim() == []
        age(queue, "k", 60)
    assert waits == [1, 2, 4, 8, 10, 10]


def test_a_duplicate_answer_waits_and_is_true(queue: Queue) -> None:
    """The other insert is still open: the answer waits for it, and when that rolls back, ours is the one that counts."""
    with psycopg.connect(queue.dsn) as other:
        other.execute("insert into queue_job (operation_key) values ('k')")
        mine: list[int | None] = []

        def enqueue() -> None:
            with contextlib.closing(Queue(queue.dsn)) as rival:
                mine.append(rival.enqueue("k"))

        thread = threading.Thread(target=enqueue)
        thread.start()
        queue.until(
            lambda: bool(
                queue.run(
                    "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
                )
            ),
            "the wait for the other insert",
        )
        assert mine == []
        other.rollback()
    thread.join(5)
    assert mine[0] is not None
    assert queue.enqueue("k") is None


def test_an_enqueue_belongs_to_the_callers_transaction(queue: Queue) -> None:
    queue.run("begin")
    assert queue.enqueue("k", body='{"a": 1}') is not None
    queue.run("rollback")
    assert queue.run("select 1 from queue_job") == []
    assert queue.enqueue("k", body='{"a": 1}') is not None
    assert queue.run("select body from queue_payload") == [{"body": {"a": 1}}]


@pytest.mark.parametrize(
    ("more", "constraint"),
    [
        ({"group": "g" * 10_000}, "group_key_is_short"),
        ({"key": "é" * 5000}, "operation_key_is_short"),
        ({"key": ""}, "operation_key_is_short"),
        ({"max_attempts": 0}, "attempts_are_bounded"),
        ({"body": '"' + "x" * 17_000_000 + '"'}, "body_is_bounded"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_does_not_fit_is_refused_by_name(queue: Queue, more: dict, constraint: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation) as refusal:
        queue.enqueue(**{"key": "k", **more})
    assert refusal.value.diag.constraint_name == constraint


def test_a_long_key_and_a_payload_of_ten_megabytes_fit(queue: Queue) -> None:
    key = secrets.token_hex(2048)
    assert queue.enqueue(key, body='"' + secrets.token_hex(5_000_000) + '"') is not None
    assert queue.enqueue(key) is None


@pytest.mark.parametrize(
    "damage", ["update queue_job set state = 'done'", "update queue_job set version = 7", "delete from queue_audit"]
)
def test_a_job_that_disagrees_with_its_audit_is_found(queue: Queue, damage: str) -> None:
    queue.enqueue("k")
    assert queue.inconsistencies() == []
    queue.run("begin")
    queue.run(damage)
    assert len(queue.inconsistencies()) == 1
    queue.run("rollback")


def test_results_written_together_are_each_guarded_and_wait_for_no_lock(queue: Queue) -> None:
    """Of five: two are written, one is locked by somebody else, one has a stale version, one is done already."""
    for number in range(5):
        queue.enqueue(f"k{number}")
    rows = queue.claim(batch=5)
    ids, versions = [row["id"] for row in rows], [row["version"] for row in rows]
    versions[3] -= 1
    queue.named("complete", id=ids[4], version=versions[4], worker="w", remote_id=None, reason="completed")
    values = {"worker": "w", "remote_ids": ["r0", None, None, None, None], "reasons": ["completed"] * 5}
    with psycopg.connect(queue.dsn) as other:
        other.execute("select 1 from queue_job where id = %(id)s for update", {"id": ids[2]})
        written = queue.named("complete_together", ids=ids, versions=versions, **values)
    assert {row["id"] for row in written} == {ids[0], ids[1]}
    assert [queue.job(f"k{number}")["state"] for number in range(5)] == ["done", "done", "running", "running", "done"]
    assert [queue.job(f"k{number}")["remote_id"] for number in range(2)] == ["r0", None]
    assert (
        queue.named(
            "complete_together",
            ids=ids[2:3],
            versions=versions[2:3],
            **{**values, "worker": "x", "remote_ids": [None], "reasons": [""]},
        )
        == []
    )
