"""Stored histories with known verdicts: for every invariant one that it lets pass and one that it, by name, must catch.

The stored files are what ``queueproof check`` would read; the tellers below say how each came about. After changing a
teller run ``python tests/golden/test_golden.py`` to store it again.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.contracts.verdict import Verdict
from harness.history.events import (
    Blocked,
    Enqueued,
    FaultHealed,
    FaultLanded,
    Inconsistent,
    OpenTransaction,
    Row,
    Waited,
)
from harness.history.made_up import CLAIM_SQL, EPOCH_US, SUBJECT, History, write
from harness.invariants import discover
from harness.invariants.backlog_recovers import RECOVERY
from harness.run.judge import judge_history

STORE = Path(__file__).parent / "histories"
Teller = Callable[[History], None]
GOOD: dict[str, tuple[dict[str, object], Teller]] = {}
BAD: dict[str, tuple[dict[str, object], Teller, frozenset[str]]] = {}


def good(invariant: str, **subject: object) -> Callable[[Teller], Teller]:
    """The decorated teller tells a history that this invariant, and every other, lets pass."""

    def keep(tell: Teller) -> Teller:
        GOOD[invariant] = (subject, tell)
        return tell

    return keep


def bad(invariant: str, *also: str, **subject: object) -> Callable[[Teller], Teller]:
    """The decorated teller tells a history that this invariant catches, together with exactly the ones in ``also``."""

    def keep(tell: Teller) -> Teller:
        BAD[invariant] = (subject, tell, frozenset({invariant, *also}))
        return tell

    return keep


def told(invariant: str, kind: str) -> History:
    subject, tell = GOOD[invariant] if kind == "good" else BAD[invariant][:2]
    history = History(f"{invariant} {kind}", msgspec.structs.replace(SUBJECT, **subject), must_hold=(invariant,))
    tell(history)
    history.end()
    return history


def granted(h: History, *, beside: int | None = None) -> None:
    """Worker 1 is granted job a; another one may be there."""
    h.start(1, *([beside] if beside is not None else []))
    h.enqueue("a")
    h.claim(1, "a")


def taken_over(h: History) -> None:
    """Worker 1 is granted job a, does not come back, and worker 2 takes it after the lease's end."""
    granted(h, beside=2)
    h.wait(2500)
    h.claim(2, "a")


@good("calls_follow_grants")
def _(h: History) -> None:
    h.start(1)
    h.enqueue("a", "b")
    h.run(1, "a")
    h.claim(1, "b")
    h.call(1, "b", 503)
    h.call(1, "b")
    h.complete(1, "b")


@bad("calls_follow_grants")
def _(h: History) -> None:
    granted(h, beside=2)
    h.call(2, "a", 503)
    h.complete(1, "a")


@good("no_double_execution")
def _(h: History) -> None:
    taken_over(h)
    h.call(2, "a")
    h.call(1, "a")  # paused before its call: late, and excused by the lease's end
    h.complete(2, "a")
    h.refused(1, "a", "complete")


@bad("no_double_execution", "calls_follow_grants")
def _(h: History) -> None:
    granted(h)
    h.call(1, "a")
    h.call(1, "a")
    h.complete(1, "a")


@good("effect_once", guarantee="effectively-once")
def _(h: History) -> None:
    granted(h, beside=2)
    h.call(1, "a", None, outcome="effect")
    h.kill(1)
    h.wait(2500)
    h.claim(2, "a")
    h.call(2, "a", outcome="known")
    h.complete(2, "a")


@bad("effect_once", guarantee="effectively-once")
def _(h: History) -> None:
    granted(h, beside=2)
    h.call(1, "a", None, outcome="effect")
    h.kill(1)
    h.wait(2500)
    h.claim(2, "a")
    h.call(2, "a", outcome="effect")
    h.complete(2, "a")


@good("no_stale_write")
def _(h: History) -> None:
    taken_over(h)
    h.refused(1, "a", "complete")
    h.call(2, "a")
    h.complete(2, "a")


@bad("no_stale_write")
def _(h: History) -> None:
    taken_over(h)
    h.call(2, "a")
    h.complete(2, "a")
    h.complete(1, "a")  # done -> done


@good("finished_stays_finished")
def _(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.run(1, "a")
    h.move(0, "a", "other", Row("pending", token="2"))  # an operator
    h.run(1, "a")
    h.move(0, "a", "retire", Row("done"))


@bad("finished_stays_finished", "no_stale_write", "no_lost_job")
def _(h: History) -> None:
    taken_over(h)
    h.call(2, "a")
    h.complete(2, "a")
    h.fail(1, "a")
    h.waited(5, met=False)


@good("one_owner")
def _(h: History) -> None:
    taken_over(h)
    h.call(2, "a")
    h.complete(2, "a")


@bad("one_owner")
def _(h: History) -> None:
    granted(h, beside=2)
    h.wait(500)
    h.claim(2, "a")
    h.call(2, "a")
    h.complete(2, "a")


@good("lease_by_database_clock")
def _(h: History) -> None:
    granted(h)
    h.wait(900)
    h.renew(1, "a")
    h.call(1, "a")
    h.complete(1, "a")


@bad("lease_by_database_clock")
def _(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a", lease_ms=3_602_000)  # its clock is an hour ahead
    h.call(1, "a")
    h.complete(1, "a")


@good("token_fences")
def _(h: History) -> None:
    taken_over(h)
    h.call(2, "a")
    h.complete(2, "a")


@bad("token_fences")
def _(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a", token="7")
    h.wait(2500)
    h.claim(2, "a", token="7")
    h.call(2, "a")
    h.complete(2, "a")


@good("no_lost_job")
def _(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a", "b", "c")
    h.run(1, "a")
    h.claim(1, "b")
    h.call(1, "b", 422)
    h.fail(1, "b", "dead")
    h.claim(1, "c")
    h.kill(1)
    h.wait(2500)
    h.run(2, "c")
    h.waited(1, met=True)


@bad("no_lost_job")
def _(h: History) -> None:
    granted(h, beside=2)
    h.kill(1)
    h.waited(6, met=False)


@good("backlog_recovers")
def _(h: History) -> None:
    h.start(1)
    h.enqueue("a", "b")
    h.say(FaultLanded("server restarted", "a new connection is refused"))
    h.wait(1000)
    h.say(FaultHealed("server restarted"))
    h.run(1, "a")
    h.run(1, "b")
    h.say(Waited(RECOVERY, 1.5, 1, met=True))


@bad("backlog_recovers")
def _(h: History) -> None:
    h.start(1)
    h.enqueue("a", "b")
    h.run(1, "a")
    h.say(FaultLanded("server restarted", "a new connection is refused"))
    h.wait(1000)
    h.say(FaultHealed("server restarted"))
    h.wait(9000)
    h.say(Waited(RECOVERY, 9.0, 1, met=False))
    h.run(1, "b")


@good("no_phantom")
def _(h: History) -> None:
    h.start(1)
    h.move(0, "a", "enqueue", Row("pending"))  # an enqueue whose acknowledgement was lost
    h.run(1, "a")


@bad("no_phantom")
def _(h: History) -> None:
    granted(h)
    h.call(1, "A ")
    h.complete(1, "a")


@good("claim_order", order="run_at")
def _(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a", "b", "c", run_at_us=EPOCH_US)
    h.enqueue("late", run_at_us=EPOCH_US + 5)
    h.refused(1, "c", "claim")
    h.run(1, "b", "a", "c", "late")


@bad("claim_order", order="run_at")
def _(h: History) -> None:
    h.start(1)
    h.enqueue("late", run_at_us=EPOCH_US + 5)
    h.enqueue("a", run_at_us=EPOCH_US)
    h.refused(1, "a", "claim")  # its statement answered: the next one starts after both enqueues
    h.run(1, "late", "a")


@good("claims_not_blocked")
def _(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.say(Blocked(1, h.pid(1), 4242, "Lock/relation", CLAIM_SQL))  # a table lock is reported apart
    h.say(Blocked(1, h.pid(1), 4242, "Lock/transactionid", "update jobs set state = ?"))  # no claim
    h.run(1, "a")


@bad("claims_not_blocked")
def _(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.say(Blocked(1, h.pid(1), 4242, "Lock/transactionid", CLAIM_SQL))
    h.run(1, "a")


@good("no_transaction_across_call")
def _(h: History) -> None:
    granted(h)
    call = h.call(1, "a", answered=False)
    h.say(OpenTransaction(call, 1, 77, "a", on_row=False, older_than_call=True, at_end=False))
    h.say(OpenTransaction(call, 1, h.pid(1), "a", on_row=True, older_than_call=False, at_end=False))  # a heartbeat
    h.renew(1, "a")
    h.complete(1, "a")


@bad("no_transaction_across_call")
def _(h: History) -> None:
    granted(h)
    call = h.call(1, "a")
    h.say(OpenTransaction(call, 1, h.pid(1), "a", on_row=True, older_than_call=True, at_end=True))
    h.complete(1, "a")


@good("operation_key_stable")
def _(h: History) -> None:
    taken_over(h)
    h.call(2, "a", 503)
    h.call(2, "a")
    h.complete(2, "a")


@bad("operation_key_stable")
def _(h: History) -> None:
    granted(h)
    h.call(1, "a", 503, operation_key="a-1")
    h.call(1, "a", operation_key="a-2")
    h.complete(1, "a")


@good("asks_before_repeating", recovery="ask")
def _(h: History) -> None:
    granted(h, beside=2)
    h.call(1, "a", None)
    h.kill(1)
    h.wait(2500)
    h.claim(2, "a")
    h.ask(2, "a", found=False)
    h.call(2, "a")
    h.complete(2, "a")


@bad("asks_before_repeating", recovery="ask")
def _(h: History) -> None:
    granted(h, beside=2)
    h.call(1, "a", None)
    h.kill(1)
    h.wait(2500)
    h.ask(2, "a", found=False)  # before its grant: worth nothing
    h.claim(2, "a")
    h.call(2, "a")
    h.complete(2, "a")


@good("stops_after_losing")
def _(h: History) -> None:
    granted(h)
    h.wait(2500)
    h.refused(1, "a", "renew")  # over, yet nobody took it: nothing is lost
    h.call(1, "a")
    h.complete(1, "a")


@bad("stops_after_losing")
def _(h: History) -> None:
    granted(h)
    h.call(1, "a")
    h.move(0, "a", "release", Row("pending", token="1"))  # an operator moved it on
    h.refused(1, "a", "complete")
    h.complete(1, "a")


@good("content_fails_once")
def _(h: History) -> None:
    granted(h, beside=2)
    h.call(1, "a", 422)
    h.kill(1)  # before it could record the answer
    h.wait(2500)
    h.claim(2, "a")
    h.call(2, "a", 422)
    h.fail(2, "a", "dead")


@bad("content_fails_once")
def _(h: History) -> None:
    granted(h, beside=2)
    h.call(1, "a", 422)
    h.fail(1, "a")
    h.claim(2, "a")
    h.call(2, "a", 422)
    h.fail(2, "a", "dead")


def deadly(h: History, times: int) -> None:
    h.enqueue("a")
    for worker in range(1, times + 1):
        h.start(worker)
        h.claim(worker, "a")
        h.call(worker, "a", None)
        h.kill(worker)
        h.wait(2500)


@good("attempts_bounded")
def _(h: History) -> None:
    deadly(h, 3)
    h.start(9)
    h.claim(9, "a")
    h.fail(9, "a", "reconcile")


@bad("attempts_bounded")
def _(h: History) -> None:
    deadly(h, 4)
    h.start(9)
    h.claim(9, "a")
    h.fail(9, "a", "reconcile")


@good("consistent")
def _(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.run(1, "a")


@bad("consistent")
def _(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.run(1, "a")
    h.say(Inconsistent("(id=1, version=3, audit=2)"))


@good("keeps_what_it_works_on", heartbeat_seconds=0.5)
def _(h: History) -> None:
    granted(h, beside=2)
    h.call(1, "a", answered=False)
    h.wait(1500)
    h.renew(1, "a")
    h.signal(1, "SIGSTOP")
    h.wait(2500)
    h.claim(2, "a")  # it was paused: that is no failing of its own
    h.call(2, "a")
    h.complete(2, "a")


@bad("keeps_what_it_works_on", heartbeat_seconds=0.5)
def _(h: History) -> None:
    granted(h, beside=2)
    h.call(1, "a", answered=False)
    h.wait(2500)
    h.claim(2, "a")
    h.call(2, "a")
    h.complete(2, "a")


def forgetful(h: History, *, called: bool) -> None:
    """Worker 1 is granted two jobs at once, runs the first, and looks for more; the other is taken from it in the end."""
    h.start(1, 2)
    h.enqueue("a", "b")
    h.claim(1, "a", xid=900)
    h.claim(1, "b", xid=900)
    h.call(1, "a")
    h.complete(1, "a")
    if called:
        h.call(1, "b", None)
    for _ in range(4):
        h.wait(600)
        h.looks(1)
    h.claim(2, "b")
    h.call(2, "b")
    h.complete(2, "b")


@good("claims_are_started")
def _(h: History) -> None:
    forgetful(h, called=True)


@bad("claims_are_started")
def _(h: History) -> None:
    forgetful(h, called=False)


@good("free_jobs_are_given_out")
def _(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a", "b")
    h.waited(13, met=False, idle=0, key="b")  # nobody was idle
    h.run(1, "a", "b")
    h.waited(1, met=True, key="b")


@bad("free_jobs_are_given_out")
def _(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a", "b")
    h.claim(1, "a")
    h.waited(13, met=False, key="b")
    h.call(1, "a")
    h.complete(1, "a")
    h.run(1, "b")


@good("failures_are_real")
def _(h: History) -> None:
    h.start(1)
    h.enqueue("a", "b")
    h.claim(1, "a")
    h.call(1, "a", 503)
    h.fail(1, "a")
    h.run(1, "a")
    h.claim(1, "b")
    h.call(1, "b")
    h.signal(1, "SIGTERM")
    h.release(1, "b")
    h.claim(1, "b")
    h.call(1, "b")
    h.complete(1, "b")


@bad("failures_are_real")
def _(h: History) -> None:
    granted(h)
    h.call(1, "a")
    h.fail(1, "a", "dead")


def stopping(h: History, *, gives_back: bool) -> None:
    """Worker 1 is asked to stop with one job under way and another one waiting in its buffer."""
    h.start(1, 2)
    h.enqueue("a", "b")
    h.claim(1, "a", xid=900)
    h.claim(1, "b", xid=900)
    h.call(1, "a")
    h.signal(1, "SIGTERM")
    h.complete(1, "a")
    if gives_back:
        h.release(1, "b")
    h.exits(1)
    h.wait(2500)
    h.run(2, "b")


@good("gives_back_at_shutdown")
def _(h: History) -> None:
    stopping(h, gives_back=True)


@bad("gives_back_at_shutdown")
def _(h: History) -> None:
    stopping(h, gives_back=False)


@pytest.mark.parametrize("invariant", [each.name for each in discover()])
def test_every_invariant_has_both_histories(invariant: str) -> None:
    assert invariant in GOOD
    assert invariant in BAD


@pytest.mark.parametrize("invariant", sorted(GOOD))
def test_good_history_passes(invariant: str) -> None:
    path = STORE / f"{invariant}.good.jsonl"
    (judged,) = judge_history(path).values()
    own = next(each for each in judged.judgements if each.invariant.name == invariant)
    assert (judged.verdict, judged.reason[:4]) == (Verdict.PASS, "held"), judged.reason
    assert own.verdict is Verdict.PASS, "the invariant did not apply, so this history proves nothing about it"


@pytest.mark.parametrize("invariant", sorted(BAD))
def test_bad_history_is_caught_by_name(invariant: str) -> None:
    path = STORE / f"{invariant}.bad.jsonl"
    (judged,) = judge_history(path).values()
    assert judged.verdict is Verdict.FAIL
    assert {finding.invariant for finding in judged.findings} == BAD[invariant][2]
    numbers = range(1, len(path.read_bytes().splitlines()) + 1)
    for finding in judged.findings:
        assert "because" in finding.sentence
        assert "however" in finding.sentence
        assert finding.witness
        assert set(finding.witness) <= set(numbers)


@pytest.mark.parametrize("kind", ["good", "bad"])
@pytest.mark.parametrize("invariant", sorted(GOOD))
def test_stored_history_is_the_one_that_is_told(invariant: str, kind: str, tmp_path: Path) -> None:
    write(tmp_path / "told.jsonl", told(invariant, kind).entries)
    assert (tmp_path / "told.jsonl").read_bytes() == (STORE / f"{invariant}.{kind}.jsonl").read_bytes()


def test_a_history_needs_an_acknowledged_enqueue_to_lose_a_job() -> None:
    # The bad history of no_lost_job would pass vacuously without one.
    assert any(isinstance(entry.what, Enqueued) for entry in told("no_lost_job", "bad").entries)


if __name__ == "__main__":
    for name in sorted(GOOD):
        for side in ("good", "bad"):
            write(STORE / f"{name}.{side}.jsonl", told(name, side).entries)
