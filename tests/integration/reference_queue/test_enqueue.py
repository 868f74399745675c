"""Putting jobs in: duplicates that are true, commits of unknown result, and what is refused before it is sent."""

import contextlib
import datetime as dt
import threading
from typing import Any

import psycopg
import pytest

from reference_queue.enqueue import BadJob, Enqueuer, NewJob, enqueue
from tests.integration.reference_queue.conftest import Queue

DUE = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)


def test_a_business_key_is_free_again_when_its_job_has_ended(queue: Queue) -> None:
    first = enqueue(queue.connection, NewJob("k1", business_key="order 7"))
    assert enqueue(queue.connection, NewJob("k2", business_key="order 7")) == type(first)(
        first.job_id, "k1", added=False
    )
    (row,) = queue.claim()
    queue.named("complete", id=row["id"], version=1, worker="w", remote_id=None, reason="completed")
    assert enqueue(queue.connection, NewJob("k3", business_key="order 7")).added


def test_a_retry_never_collides_with_a_job_added_meanwhile(queue: Queue) -> None:
    """Zoo B43: the key stays taken in every state from which the job may run again."""
    job = enqueue(queue.connection, NewJob("k1", business_key="b"))
    for state in ("running", "retry", "paused", "reconcile"):
        queue.run(
            "update queue_job set state = %(s)s, worker_id = 'w', lease_until = case %(s)s when 'running' then now() end",
            {"s": state},
        )
        assert enqueue(queue.connection, NewJob("k2", business_key="b")).job_id == job.job_id
    queue.run("update queue_job set state = 'pending'")


@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_a_duplicate_is_only_said_of_a_committed_job(queue: Queue, ends: str) -> None:
    with contextlib.closing(Queue(queue.dsn)) as other:
        other.run("begin")
        enqueue(other.connection, NewJob("theirs", business_key="b"))
        answers: list[Any] = []

        def second() -> None:
            with contextlib.closing(Queue(queue.dsn)) as mine:
                answers.append(enqueue(mine.connection, NewJob("mine", business_key="b")))

        thread = threading.Thread(target=second)
        thread.start()
        queue.until(
            lambda: bool(
                queue.run(
                    "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
                )
            ),
            "the wait",
        )
        other.run(ends)
        thread.join(5)
    assert (answers[0].added, answers[0].operation_key) == ((False, "theirs") if ends == "commit" else (True, "mine"))


def test_a_lost_reply_is_answered_by_the_same_key(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    """The insert is committed and the connection dies before the answer: the second try finds its own job."""
    enqueuer = Enqueuer(queue.dsn, wake=False, pause=lambda _seconds: None)
    real = psycopg.Connection.execute
    lost = []

    def commits_and_dies(self: Any, text: Any, *args: Any, **kwargs: Any) -> Any:
        cursor = real(self, text, *args, **kwargs)
        if "insert into queue_job" in str(text) and not lost:
            lost.append(True)
            raise psycopg.OperationalError("server closed the connection unexpectedly")
        return cursor

    monkeypatch.setattr(psycopg.Connection, "execute", commits_and_dies)
    answer = enqueuer.enqueue(NewJob("k"))
    monkeypatch.undo()
    enqueuer.close()
    assert lost
    assert (answer.operation_key, answer.added) == ("k", False)
    assert queue.run("select count(*) as n from queue_job") == [{"n": 1}]


def test_the_wake_up_is_sent_after_the_commit(queue: Queue) -> None:
    queue.run("listen queue_wake")
    enqueuer = Enqueuer(queue.dsn)
    enqueuer.enqueue(NewJob("k1"))
    enqueuer.enqueue(NewJob("k2"))
    enqueuer.close()
    assert len(list(queue.connection.notifies(timeout=0.2))) == 1  # the second one was within the same moment
    assert len(queue.run("select 1 from queue_job")) == 2


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"priority": 2**31}, "priority is 2147483648"),
        ({"priority": -(2**31) - 1}, "priority is -2147483649"),
        ({"run_at": dt.datetime(2030, 1, 1)}, "no time zone"),  # noqa: DTZ001
        ({"group_key": "g" * 10_000}, "group_key has 10000 bytes"),
        ({"group_key": ""}, "group_key has 0 bytes"),
        ({"operation_key": "é" * 5000}, "operation_key has 10000 bytes"),
        ({"operation_key": "a\x00b"}, "NUL"),
        ({"payload": "a\x00b"}, "NUL"),
        ({"payload": "x" * 16_000_000}, "store it, and pass a reference"),
        ({"max_attempts": 0}, "max_attempts is 0"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_put_in_is_said_before_anything_is_sent(more: dict, told: str) -> None:
    with pytest.raises(BadJob, match=told):
        NewJob(**{"operation_key": "k", **more}).values()


def test_limits_of_the_types_are_taken(queue: Queue) -> None:
    for number, priority in enumerate((2**31 - 1, -(2**31))):
        assert enqueue(queue.connection, NewJob(f"k{number}", priority=priority, run_at=DUE)).added
    tokyo = dt.timezone(dt.timedelta(hours=9))
    assert enqueue(
        queue.connection, NewJob("k", run_at=dt.datetime(2020, 1, 1, 9, tzinfo=tokyo), payload={"n": "x" * 10_000_000})
    ).added
    assert queue.job("k")["run_at"] == DUE
