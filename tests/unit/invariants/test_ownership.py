"""Who owned a job and who wrote to it: grants, takeovers, rescues, stale writes, and who is not blamed."""

import msgspec
import pytest

from harness.contracts.invariant import Unknown
from harness.contracts.verdict import Finding
from harness.history.events import Attempted, Entry, Moved, Row
from harness.history.made_up import SUBJECT, History
from harness.history.story import Story
from harness.invariants.calls_follow_grants import calls_follow_grants
from harness.invariants.finished_stays_finished import finished_stays_finished
from harness.invariants.no_stale_write import no_stale_write
from harness.invariants.one_owner import one_owner
from harness.invariants.stops_after_losing import stops_after_losing
from harness.invariants.token_fences import token_fences


def claimed(*workers: int) -> History:
    h = History()
    h.start(*workers)
    h.enqueue("a")
    h.claim(workers[0], "a")
    return h


def superseded() -> History:
    h = claimed(1, 2, 3)
    h.wait(2500)
    h.claim(2, "a")
    return h


def findings(judge: object, h: History) -> list[Finding | Unknown]:
    return list(judge.judge(Story.of(h.entries)))  # type: ignore[attr-defined]


def test_a_hold_between_the_clocks_is_unknown() -> None:
    h = claimed(1, 2)
    h.wait(2500)
    h.claim(2, "a", took_ms=1500)
    (said,) = findings(one_owner, h)
    assert isinstance(said, Unknown)


def test_a_stranger_who_gives_a_living_job_back_is_early() -> None:
    h = claimed(1, 2)
    h.wait(500)
    h.release(2, "a")
    (said,) = findings(one_owner, h)
    assert isinstance(said, Finding)
    assert said.workers == (1, 2)


def test_a_rescuer_after_the_leases_end_is_honest() -> None:
    h = claimed(1, 2)
    h.wait(2500)
    h.release(2, "a")
    h.claim(2, "a")
    assert findings(one_owner, h) == []
    assert findings(no_stale_write, h) == []


def test_a_worker_may_take_its_own_job_again_after_its_earlier_process_died() -> None:
    h = claimed(1)
    h.kill(1)
    h.start(1)
    h.claim(1, "a")
    assert findings(one_owner, h) == []


def test_a_new_process_may_not_rob_an_earlier_one_that_lives() -> None:
    h = claimed(1)
    h.start(1)
    h.claim(1, "a")
    assert len(findings(one_owner, h)) == 1


@pytest.mark.parametrize("change", ["complete", "fail", "renew", "release"])
def test_every_write_path_of_an_earlier_holder_is_stale(change: str) -> None:
    h = superseded()
    h.wait(100)
    state = {"complete": "done", "fail": "retry", "renew": "running", "release": "pending"}[change]
    h.change(1, "a", change, state)
    (said,) = findings(no_stale_write, h)
    assert isinstance(said, Finding)
    assert change in said.sentence
    assert len(said.witness) == 3


def test_a_token_that_a_queue_does_not_have_is_not_told() -> None:
    h = superseded()
    h.change(1, "a", "complete", "done")
    (told,) = findings(no_stale_write, h)
    assert isinstance(told, Finding)
    assert told.sentence.count("(token ") == 2
    (untold,) = no_stale_write.judge(Story.of([_without_token(entry) for entry in h.entries]))
    assert isinstance(untold, Finding)
    assert "token" not in untold.sentence
    assert "granted to worker 2 after its own grant; however" in untold.sentence


def _without_token(entry: Entry) -> Entry:
    moved = entry.what
    if not isinstance(moved, Moved):
        return entry
    rows = (row and msgspec.structs.replace(row, token=None) for row in (moved.old, moved.new))
    return msgspec.structs.replace(
        entry, what=msgspec.structs.replace(moved, **dict(zip(("old", "new"), rows, strict=True)))
    )


def test_an_earlier_holder_may_rescue_the_job_of_a_later_one() -> None:
    h = superseded()
    h.kill(2)
    h.wait(2500)
    h.release(1, "a")
    assert findings(no_stale_write, h) == []
    assert findings(one_owner, h) == []


def test_an_earlier_holder_may_delete_what_is_finished() -> None:
    h = superseded()
    h.complete(2, "a")
    h.move(1, "a", "retire", Row("done"))
    assert findings(no_stale_write, h) == []


def test_our_own_writes_and_an_operators_are_not_blamed() -> None:
    h = superseded()
    h.complete(2, "a")
    h.move(0, "a", "other", Row("pending"))
    h.move(0, "a", "retire", None)
    for judge in (no_stale_write, one_owner, finished_stays_finished):
        assert findings(judge, h) == []


def test_the_orphan_of_a_dead_process_is_stale_for_its_own_successor() -> None:
    h = claimed(1)
    session, pid = h.session(1), h.pid(1)
    h.kill(1)
    h.start(1)
    h.wait(2500)
    h.claim(1, "a")
    h.move(1, "a", "complete", Row("done"), session=session, pid=pid)
    assert len(findings(no_stale_write, h)) == 1


def test_a_complete_after_the_leases_end_without_a_takeover_is_legal() -> None:
    h = claimed(1, 2)
    h.wait(5000)
    h.complete(1, "a")
    for judge in (no_stale_write, one_owner, finished_stays_finished, stops_after_losing):
        assert findings(judge, h) == []


def test_dead_to_retry_by_a_worker_is_a_finding_and_paused_to_done_is_none() -> None:
    h = claimed(1, 2)
    h.fail(1, "a", "dead")
    h.change(1, "a", "other", "retry")
    assert len(findings(finished_stays_finished, h)) == 1
    h = claimed(1, 2)
    h.fail(1, "a", "reconcile")
    h.complete(1, "a")
    assert findings(finished_stays_finished, h) == []


def test_a_call_before_its_grants_commit_is_caught() -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a", settles=False, read=False)
    h.call(1, "a")
    h.settle(1)
    h.show()
    (said,) = findings(calls_follow_grants, h)
    assert isinstance(said, Finding)
    assert "ended only at" in said.sentence


def test_a_call_before_its_claim_is_caught() -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.call(1, "a")
    h.claim(1, "a")
    assert len(findings(calls_follow_grants, h)) == 1


def test_a_call_that_the_wire_cannot_place_is_unknown() -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a", wire=False, read=False)
    h.call(1, "a")
    h.show()
    (said,) = findings(calls_follow_grants, h)
    assert isinstance(said, Unknown)


def test_a_claim_that_changes_no_row_grants_nothing_that_calls_could_follow() -> None:
    for shows, expected in ((False, True), (True, False)):
        h = History(subject=msgspec.structs.replace(SUBJECT, has_owner=shows, has_token=shows))
        h.start(1)
        h.enqueue("a")
        h.call(1, "a")
        assert (calls_follow_grants.applies(Story.of(h.entries)) is not None) is expected
    h = History(subject=msgspec.structs.replace(SUBJECT, has_owner=False, has_token=False))
    h.start(1)
    h.enqueue("a")
    h.run(1, "a")  # its state alone shows a grant
    assert calls_follow_grants.applies(Story.of(h.entries)) is None


def test_a_failed_reply_allows_one_more_call_and_no_second() -> None:
    h = claimed(1)
    h.call(1, "a", None)
    h.call(1, "a")
    assert findings(calls_follow_grants, h) == []
    h.call(1, "a")
    assert len(findings(calls_follow_grants, h)) == 1


def test_tokens_need_not_grow_unless_that_is_promised() -> None:
    for promised, expected in ((False, 0), (True, 1)):
        h = History(subject=msgspec.structs.replace(SUBJECT, token_increasing=promised))
        h.start(1, 2)
        h.enqueue("a")
        h.claim(1, "a", token="9")
        h.wait(2500)
        h.claim(2, "a", token="4")
        assert len(findings(token_fences, h)) == expected


def test_a_grant_without_a_token_is_a_finding() -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a", token=None)
    assert len(findings(token_fences, h)) == 1


def test_a_refusal_that_names_the_row_by_its_id_counts() -> None:
    h = claimed(1)
    h.move(0, "a", "release", Row("pending", token="1"))
    h.say(Attempted(h.session(1), 1, h.pid(1), ("complete",), "complete", 0, jobs=("id-a",)))
    h.complete(1, "a")
    assert len(findings(stops_after_losing, h)) == 1
