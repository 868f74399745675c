"""The worker as a process, on a real server, with a real outside."""

import signal
import time
from pathlib import Path

import pytest

from tests.integration.reference_queue.conftest import Outside, Queue, Workers


def test_a_job_is_called_once_and_done(queue: Queue, outside: Outside, workers: Workers) -> None:
    queue.enqueue("a/b %<é>")
    workers.start()
    job = queue.until_state("a/b %<é>", "done")
    assert outside.calls == [("a/b %<é>", "1")]
    assert (job["version"], job["attempts"], job["worker_id"], job["lease_until"]) == (1, 1, "w1", None)


def test_sigterm_gives_back_the_buffer_and_beats_until_the_last_handler_has_ended(
    queue: Queue, outside: Outside, workers: Workers
) -> None:
    outside.behave = lambda _key: (2.5, 200)
    for number in range(4):
        queue.enqueue(f"k{number}")
    process = workers.start(QUEUE_BUFFER="3")
    queue.until(lambda: len(outside.calls) == 1, "the first call")
    process.send_signal(signal.SIGTERM)
    queue.until(
        lambda: len(queue.run("select 1 from queue_job where state = 'pending'")) == 3, "the buffer given back", 1.5
    )
    assert process.wait(10) == 0
    assert len(outside.calls) == 1
    # The call took longer than two leases, and nobody could have taken it over.
    assert queue.job("k0")["state"] == "done"
    assert queue.job("k0")["renewals"] > 5
    assert {queue.job(f"k{number}")["attempts"] for number in (1, 2, 3)} == {0}


def test_content_fails_at_once_and_system_trouble_is_tried_again(
    queue: Queue, outside: Outside, workers: Workers
) -> None:
    outside.behave = lambda key: (0, {"bad": 422, "down": 503}[key])
    queue.enqueue("bad")
    queue.enqueue("down")
    workers.start()
    bad = queue.until_state("bad", "dead")
    assert (bad["attempts"], bad["last_error_class"], bad["last_error_code"]) == (1, "content", "http_422")
    down = queue.until_state("down", "dead", "reconcile")
    assert (down["state"], down["attempts"], down["last_error_class"]) == ("dead", 3, "unavailable")
    assert [key for key, _ in outside.calls].count("down") == 3
    assert outside.asked.count("down") == 3  # before the second and the third call, and before it was given up


def test_a_job_that_had_its_effect_in_spite_of_a_broken_answer_is_not_called_again(
    queue: Queue, outside: Outside, workers: Workers
) -> None:
    def applies_and_refuses(key: str) -> tuple[float, int]:
        outside.applied.add(key)
        return 0, 500

    outside.behave = applies_and_refuses
    queue.enqueue("k")
    workers.start()
    queue.until_state("k", "done")
    assert len(outside.calls) == 1


def test_killed_in_its_call_the_job_is_taken_over_and_the_outside_is_asked(
    queue: Queue, outside: Outside, workers: Workers
) -> None:
    outside.behave = lambda _key: (60, 200)
    queue.enqueue("k")
    victim = workers.start("victim")
    queue.until(lambda: bool(outside.calls), "the call")
    victim.kill()
    outside.behave = lambda _key: (0, 200)
    workers.start("heir")
    job = queue.until_state("k", "done")
    assert (job["version"], job["attempts"], job["worker_id"]) == (2, 2, "heir")
    assert outside.asked == ["k"]
    assert outside.calls == [("k", "1"), ("k", "2")]


def test_paused_past_its_lease_a_worker_writes_nothing(queue: Queue, outside: Outside, workers: Workers) -> None:
    outside.behave = lambda _key: (0.3, 200)
    queue.enqueue("k")
    sleeper = workers.start("sleeper")
    queue.until(lambda: bool(outside.calls), "the call")
    sleeper.send_signal(signal.SIGSTOP)
    workers.start("heir")
    queue.until_state("k", "done")
    assert queue.job("k")["worker_id"] == "heir"
    sleeper.send_signal(signal.SIGCONT)
    queue.until(lambda: "ownership=lost" in workers.log() or "write=lost" in workers.log(), "the loss noticed")
    assert queue.job("k")["worker_id"] == "heir"
    assert sleeper.poll() is None


def test_a_job_that_kills_its_worker_ends_at_its_maximum(queue: Queue, outside: Outside, workers: Workers) -> None:
    outside.behave = lambda _key: (60, 200)
    queue.enqueue("poison", max_attempts=2)
    for number in (1, 2):
        victim = workers.start(f"victim{number}")
        queue.until(lambda number=number: len(outside.calls) == number, "the call")
        victim.kill()
    workers.start("last")
    job = queue.until_state("poison", "dead")
    assert (job["attempts"], job["recoveries"], job["last_error_class"]) == (2, 1, "attempts_used_up")
    assert len(outside.calls) == 2


@pytest.mark.parametrize("terminations", [3])
def test_a_worker_survives_the_loss_of_all_its_connections(
    queue: Queue, outside: Outside, workers: Workers, terminations: int
) -> None:
    outside.behave = lambda _key: (0.05, 200)
    process = workers.start(QUEUEPROOF_SLOTS="3")
    for number in range(30):
        queue.enqueue(f"k{number}")
    for _ in range(terminations):
        queue.run(
            "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'reference-queue%%'", {}
        )
        time.sleep(0.3)  # the time to reconnect
    queue.until(lambda: not queue.run("select 1 from queue_job where state <> 'done'"), "all done", 20)
    assert len(outside.applied) == 30
    assert process.poll() is None


def test_a_wrong_setting_or_schema_is_refused_in_a_sentence(queue: Queue, workers: Workers, tmp_path: Path) -> None:
    assert workers.start("a", QUEUE_LEASE="").wait(10) == 2
    assert workers.start("b", QUEUE_LEASE="-3s", QUEUEPROOF_SLOTS="0", QUEUE_BATCH="101").wait(10) == 2
    queue.run("update queue_schema set version = 0")
    assert workers.start("c").wait(10) == 2
    (tmp_path / "read_schema.sql").write_text("selec version")
    assert workers.start("d", REFERENCE_QUEUE_SQL=str(tmp_path)).wait(10) == 2
    log = workers.log()
    assert "--lease is not given" in log
    for flag in ("--lease is '-3s'", "--slots is '0'", "--batch is '101'", "schema has version 0", "syntax error"):
        assert flag in log
    assert "Traceback" not in log
