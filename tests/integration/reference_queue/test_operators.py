"""The command of the operators, as they use it: nothing happens on a stale screen, and every move is in the audit."""

import io
import json
from typing import Any

import pytest

from reference_queue import cli
from tests.integration.reference_queue.conftest import Queue


class Command:
    def __init__(self, queue: Queue, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys = capsys
        monkeypatch.setenv("DATABASE_URL", queue.dsn)

    def __call__(self, *words: str) -> tuple[int, Any, str]:
        code = cli.main([words[0], "--json", *words[1:]])
        out, err = self._capsys.readouterr()
        return code, json.loads(out) if out else None, err


@pytest.fixture
def command(queue: Queue, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(queue, capsys, monkeypatch)


def seen(queue: Queue, key: str) -> list[str]:
    job = queue.job(key)
    lease = job["lease_until"].isoformat() if job["lease_until"] else "none"
    return [
        str(job["id"]),
        "--state",
        job["state"],
        "--version",
        str(job["version"]),
        "--lease",
        lease,
        "--reason",
        "because",
    ]


def put_into(queue: Queue, key: str, state: str, phase: str = "call_unknown") -> None:
    queue.enqueue(key)
    (row,) = queue.claim()
    queue.run("update queue_job set phase = %(p)s where id = %(id)s", {"p": phase, "id": row["id"]})
    queue.named(
        "fail", id=row["id"], version=1, worker="w", outcome=state, absent=False, error_class="c", error_code=None,
        error_reason="r", response_id=None, base="1s", cap="1s", jitter=0.0,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("move", "state", "becomes", "more"),
    [
        ("pause", "pending", "paused", ()),
        ("resume", "paused", "retry", ()),
        ("confirm", "reconcile", "done", ("--remote-id", "R-1")),
        ("requeue", "dead", "pending", ()),
        ("requeue", "reconcile", "pending", ()),
        ("cancel", "reconcile", "dead", ()),
    ],
)
def test_each_move(queue: Queue, command: Command, move: str, state: str, becomes: str, more: tuple[str, ...]) -> None:
    if state == "pending":
        queue.enqueue("k")
    else:
        put_into(queue, "k", state)
    before = queue.job("k")
    code, answer, _ = command(move, *seen(queue, "k"), "--operator", "ann", *more)
    after = queue.job("k")
    assert code == 0
    assert (
        (after["state"], after["version"]) == (becomes, before["version"] + 1) == (answer["state"], answer["version"])
    )
    assert after["phase"] == ("result_obtained" if move == "confirm" else before["phase"])
    assert after["attempts"] == (0 if move == "requeue" else before["attempts"])
    (audit,) = queue.run("select * from queue_audit where worker_id = 'ann'")
    assert (audit["from_state"], audit["to_state"], audit["reason"]) == (state, becomes, f"{move}: because")


def test_pausing_a_running_job_takes_it_from_its_worker(queue: Queue, command: Command) -> None:
    queue.enqueue("k")
    (row,) = queue.claim()
    assert command("pause", *seen(queue, "k"))[0] == 0
    assert queue.named("complete", id=row["id"], version=1, worker="w", remote_id=None, reason="late") == []
    fates = queue.named("renew", ids=[row["id"]], versions=[1], worker="w", lease="1s", longest_run="1h")
    assert fates[0]["fate"] == "lost"


@pytest.mark.parametrize("event", ["state", "version", "lease"])
def test_a_stale_screen_is_refused(queue: Queue, command: Command, event: str) -> None:
    queue.enqueue("k")
    (row,) = queue.claim()
    stale = seen(queue, "k")
    if event == "state":
        queue.named("complete", id=row["id"], version=1, worker="w", remote_id=None, reason="completed")
    elif event == "version":
        queue.run("update queue_job set lease_until = now()")
        queue.claim(worker="heir", name="takeover")
    else:
        queue.named("renew", ids=[row["id"]], versions=[1], worker="w", lease="20s", longest_run="1h")
    before = queue.job("k")
    code, _, told = command("cancel", *stale)
    assert code == 1
    assert f"{event} is now" in told
    assert queue.job("k") == before


def test_a_person_sees_the_job_before_the_question(
    queue: Queue, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_into(queue, "my key", "reconcile")
    for answer, code in (("no\n", 1), ("", 1), ("yes\n", 0)):
        monkeypatch.setattr("sys.stdin", io.StringIO(answer))
        got, _, told = command("requeue", str(queue.job("my key")["id"]), "--reason", "checked by hand")
        assert got == code
        for fact in ("my key", "reconcile", "attempts", "worker_id", "lease_until", "version"):
            assert fact in told
    assert queue.job("my key")["state"] == "pending"


def test_refusals_are_sentences(queue: Queue, command: Command) -> None:
    put_into(queue, "k", "dead", "not_called")
    assert "is for jobs that are paused" in command("resume", *seen(queue, "k"))[2]
    assert "there is no job 999" in command("show", "999")[2]
    assert "go together" in command("cancel", "1", "--state", "dead", "--reason", "r")[2]
    queue.run("update queue_job set business_key = 'b'")
    queue.enqueue("other", business_key="b")
    code, _, told = command("requeue", *seen(queue, "k"))
    assert (code, "same business key" in told) == (1, True)
    code, _, told = command("cancel", *seen(queue, "other")[:-1], "two\nlines")
    assert "printable" in told


def test_a_paused_job_without_attempts_left_does_not_become_a_trap_for_every_claim(
    queue: Queue, command: Command
) -> None:
    put_into(queue, "k", "paused")
    queue.run("update queue_job set attempts = 3")
    code, _, told = command("resume", *seen(queue, "k"))
    assert (code, "no attempts left" in told) == (1, True)
    assert command("requeue", *seen(queue, "k"))[0] == 0
    assert len(queue.claim()) == 1


def test_looking(queue: Queue, command: Command) -> None:
    put_into(queue, "k", "reconcile")
    queue.enqueue("p")
    assert {row["state"]: row["jobs"] for row in command("status")[1]} == {"reconcile": 1, "pending": 1}
    assert [row["operation_key"] for row in command("reconcile")[1]] == ["k"]
    assert [row["to_state"] for row in command("show", "1")[1]["audit"]] == ["pending", "running", "reconcile"]
    assert command("check") == (0, [], "")


def test_enqueue_by_command(queue: Queue, command: Command) -> None:
    assert command("enqueue", "k", "--payload", '{"a": 1}', "--run-at", "2020-01-01T00:00:00+09:00")[1]["added"] is True
    assert command("enqueue", "k")[1]["added"] is False
    assert command("enqueue", "x", "--payload", "{")[0] == 2
    assert "no time zone" in command("enqueue", "x", "--run-at", "2020-01-01T00:00:00")[2]
    assert "is not known" in command("enqueue", "x", "--tenant", "t")[2]
    assert command("tenant", "t", "--cap", "1001")[0] == 2
    assert command("tenant", "t", "--cap", "2")[0] == 0
    assert command("enqueue", "x", "--tenant", "t")[0] == 0


def test_no_database_and_no_queue_are_told_without_the_password(
    queue: Queue, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:hunter2@127.0.0.1:1/x")
    code, _, told = command("status")
    assert (code, "hunter2" in told, "cannot be reached" in told) == (3, False, True)
    monkeypatch.setenv("DATABASE_URL", queue.dsn)
    with queue.connection.transaction(force_rollback=True):
        pass
    queue.run("alter table queue_job rename to x")
    assert "no queue in this database" in command("status")[2]
    queue.run("alter table x rename to queue_job")
