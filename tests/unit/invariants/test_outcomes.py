"""Whether jobs end, in which order they are claimed, and what blocks or spans a call."""

import msgspec
import pytest

from harness.contracts.invariant import Unknown
from harness.contracts.verdict import Finding
from harness.history.events import (
    Answered,
    Attempted,
    BackendEnded,
    Blocked,
    Enqueued,
    FaultLanded,
    Final,
    OpenTransaction,
    Row,
    Stalled,
    Waited,
)
from harness.history.made_up import EPOCH_US, SUBJECT, History
from harness.history.story import Story
from harness.invariants.asks_before_repeating import asks_before_repeating
from harness.invariants.attempts_bounded import attempts_bounded
from harness.invariants.backlog_recovers import RECOVERY, backlog_recovers
from harness.invariants.claim_order import claim_order
from harness.invariants.claims_are_started import claims_are_started
from harness.invariants.claims_not_blocked import claims_not_blocked
from harness.invariants.content_fails_once import content_fails_once
from harness.invariants.failures_are_real import failures_are_real
from harness.invariants.free_jobs_are_given_out import free_jobs_are_given_out
from harness.invariants.gives_back_at_shutdown import gives_back_at_shutdown
from harness.invariants.keeps_what_it_works_on import keeps_what_it_works_on
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.no_transaction_across_call import no_transaction_across_call
from harness.invariants.operation_key_stable import operation_key_stable


def said(judge: object, h: History) -> list[Finding | Unknown]:
    return list(judge.judge(Story.of(h.entries)))  # type: ignore[attr-defined]


def kinds(judge: object, h: History) -> list[str]:
    return [type(each).__name__ for each in said(judge, h)]


def abandoned(**subject: object) -> History:
    h = History(subject=msgspec.structs.replace(SUBJECT, **subject))
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.kill(1)
    return h


@pytest.mark.parametrize(
    ("seconds", "idle", "expected"), [(6, 1, ["Finding"]), (6, 0, ["Unknown"]), (3, 1, ["Unknown"])]
)
def test_a_job_is_stuck_only_when_it_had_its_time_with_an_idle_worker(
    seconds: float, idle: int, expected: list[str]
) -> None:
    h = abandoned()
    h.waited(seconds, met=False, idle=idle)
    h.end()
    assert kinds(no_lost_job, h) == expected


def test_without_any_stated_time_nothing_is_said_for_sure() -> None:
    h = abandoned()
    h.end()
    assert kinds(no_lost_job, h) == ["Unknown"]


@pytest.mark.parametrize(("stall_ms", "expected"), [(1000.0, ["Finding"]), (2500.0, ["Unknown"])])
def test_a_stalled_machine_makes_the_bound_inconclusive(stall_ms: float, expected: list[str]) -> None:
    h = abandoned()  # 6 s are given, 2 of them the lease's: half the slack is 2 s
    h.wait(3000)
    h.say(Stalled(loop_lag_ms=stall_ms))
    h.wait(3000)
    h.waited(0, met=False)
    wait = h.entries.pop()
    h.say(msgspec.structs.replace(wait.what, seconds=6.0))
    h.end()
    assert kinds(no_lost_job, h) == expected


def test_never_is_judged_as_stated() -> None:
    h = abandoned(takeover_within_seconds=None)
    h.waited(60, met=False)
    h.end()
    assert kinds(no_lost_job, h) == []
    h = History(subject=msgspec.structs.replace(SUBJECT, takeover_within_seconds=None))
    h.start(1)
    h.enqueue("a")  # nobody ever had it: that is not what "never" is about
    h.waited(60, met=False)
    h.end()
    assert kinds(no_lost_job, h) == ["Finding"]


def test_an_acknowledged_enqueue_without_a_row_is_lost() -> None:
    h = History()
    h.say(Enqueued("a"))
    h.say(Final("a", None, None))
    assert kinds(no_lost_job, h) == ["Finding"]


def test_a_row_removed_before_anything_was_answered_is_lost_and_after_an_answer_it_has_ended() -> None:
    for answered, expected in ((False, ["Finding"]), (True, [])):
        h = History()
        h.start(1)
        h.enqueue("a")
        h.claim(1, "a")
        if answered:
            h.call(1, "a", 422)
        h.move(1, "a", "retire", Row("deleted"))
        h.end()
        assert kinds(no_lost_job, h) == expected


def test_endless_claims_are_called_a_livelock() -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    for _ in range(5):
        h.claim(1, "a")
        h.call(1, "a")
        h.refused(1, "a", "complete")
        h.wait(2500)
    h.waited(6, met=False)
    h.end()
    (finding,) = said(no_lost_job, h)
    assert isinstance(finding, Finding)
    assert "livelock" in finding.sentence


def ordered(order: str) -> History:
    h = History(subject=msgspec.structs.replace(SUBJECT, order=order))
    h.start(1, 2)
    return h


@pytest.mark.parametrize("order", ["run_at", "priority", "per-key"])
def test_an_order_that_nobody_can_see_is_not_judged_as_kept(order: str) -> None:
    h = ordered(order)
    h.enqueue("first")
    h.enqueue("second")
    h.run(1, "second", "first")
    assert claim_order.applies(Story.of(h.entries)) is not None


def test_a_job_that_was_being_claimed_was_not_passed_over() -> None:
    h = ordered("run_at")
    h.enqueue("first", run_at_us=EPOCH_US)
    h.enqueue("second", run_at_us=EPOCH_US + 1)
    h.refused(1, "x", "claim")
    h.refused(2, "x", "claim")
    h.claim(2, "second")
    h.claim(1, "first", took_ms=20)  # its transaction had begun before: it may have held the row all along
    assert said(claim_order, h) == []


def test_a_claim_that_may_have_begun_before_the_enqueue_is_not_judged() -> None:
    h = ordered("run_at")
    h.refused(1, "x", "claim")
    h.enqueue("second", run_at_us=EPOCH_US + 1)
    h.enqueue("first", run_at_us=EPOCH_US)
    h.run(1, "second", "first")
    assert said(claim_order, h) == []


@pytest.mark.parametrize("why", ["held", "not due", "rolled back"])
def test_what_could_not_be_claimed_was_not_passed_over(why: str) -> None:
    h = ordered("run_at")
    run_at = {"not due": EPOCH_US + 10_000_000}.get(why, EPOCH_US)
    h.enqueue("first", run_at_us=run_at)
    h.enqueue("second", run_at_us=run_at + 1)
    if why == "held":
        h.say(FaultLanded("row held", "backend 9", key="first"))
    if why == "rolled back":
        h.claim(2, "first", read=False)
    h.refused(1, "x", "claim")
    h.run(1, "second")
    assert said(claim_order, h) == []


def test_priority_comes_before_time_and_smaller_is_sooner() -> None:
    for better, expected in ((1, ["Finding"]), (9, [])):
        h = ordered("priority")
        h.enqueue("other", priority=5, run_at_us=EPOCH_US)
        h.enqueue("better", priority=better, run_at_us=EPOCH_US + 1)
        h.refused(1, "x", "claim")
        h.run(1, "other", "better")
        assert kinds(claim_order, h) == expected


def test_one_group_runs_in_order_and_one_at_a_time() -> None:
    h = ordered("per-key")
    h.enqueue("a1", "a2", group="a")
    h.enqueue("b1", group="b")
    h.claim(1, "a1")
    h.run(2, "b1")  # another group need not wait
    h.complete(1, "a1")
    h.run(2, "a2")
    assert said(claim_order, h) == []
    h = ordered("per-key")
    h.enqueue("a1", "a2", group="a")
    h.claim(1, "a1")
    h.claim(2, "a2")
    h.complete(1, "a1")
    assert kinds(claim_order, h) == ["Finding"]


def test_a_group_may_not_be_overtaken_by_a_later_job_either() -> None:
    h = ordered("per-key")
    h.enqueue("a1", "a2", group="a")
    h.run(1, "a2", "a1")
    assert kinds(claim_order, h) == ["Finding"]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE jobs\n  SET state = 'running' /* now */ WHERE id = $1;", ["Finding"]),
        ("update other set state = 1", []),
        ("select 1 from jobs where state in ('new', 'retry') for update", ["Finding"]),
    ],
)
def test_a_statement_on_the_server_is_recognised_by_its_shape(statement: str, expected: list[str]) -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.say(Blocked(1, 1, 2, "Lock/tuple", statement))
    # The wire tells a list of values as one.
    listed = "select ? from jobs where state in (?) for update"
    h.say(Attempted(101, 1, 1001, ("claim",), listed, 0))
    h.run(1, "a")
    assert kinds(claims_not_blocked, h) == expected


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (f"with due as (select id from jobs where note <> '{'x' * 1500}"[:1023], ["Finding"]),
        (f"with due as (select id from jobs where id in ({'12345, ' * 200}"[:1023], []),
        ("with due as (select id from jobs where note <> 'x') " + f"-- {'remark ' * 200}"[:971], ["Finding"]),
        (f"with due as (select id from others where note <> '{'x' * 1500}"[:1023], []),
        (f"/* {'nothing but a remark ' * 90}"[:1023], ["Unknown"]),
    ],
)
def test_a_long_statement_that_the_server_cut_off_is_recognised_by_its_beginning(
    shown: str, expected: list[str]
) -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.say(Blocked(1, 1, 2, "Lock/tuple", shown))
    claim = "with due as (select id from jobs where note <> ?) update jobs set state = ? from due"
    h.say(Attempted(101, 1, 1001, ("claim",), claim, 1, keys=("a",)))
    assert kinds(claims_not_blocked, h) == expected


def test_without_any_known_claim_a_wait_is_unknown() -> None:
    h = History()
    h.say(Blocked(1, 1, 2, "Lock/tuple", "select 1"))
    assert kinds(claims_not_blocked, h) == ["Unknown"]


@pytest.mark.parametrize(
    ("on_row", "older", "at_end", "expected"),
    [
        (True, True, False, 1),
        (False, True, True, 1),
        (False, True, False, 0),
        (False, False, True, 0),
        (True, False, False, 1),
    ],
)
def test_which_open_transactions_span_a_call(on_row: bool, older: bool, at_end: bool, expected: int) -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a")
    call = h.call(1, "a")
    for _ in range(2):  # seen twice, told once
        h.say(OpenTransaction(call, 1, 55, "a", on_row, older, at_end))
    assert len(said(no_transaction_across_call, h)) == expected


@pytest.mark.parametrize(("ends", "expected"), [("before", 0), ("within", 0), ("after", 1), ("never", 1)])
def test_a_claims_transaction_that_spans_a_call_is_seen_on_the_wire(ends: str, expected: int) -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a", settles=ends == "before", read=False)
    call = h.call(1, "a", answered=False)
    if ends == "within":  # a call before its commit, which calls_follow_grants judges, yet none that spans it
        h.settle(1)
    h.say(Answered(call, 1, "a", 200))
    if ends == "after":
        h.settle(1)
    h.show()
    assert len(said(no_transaction_across_call, h)) == expected


def test_two_jobs_may_not_share_an_operation_key() -> None:
    h = History()
    h.start(1)
    h.enqueue("a", "b")
    for key in "ab":
        h.claim(1, key)
        h.call(1, key, operation_key="the same")
    assert kinds(operation_key_stable, h) == ["Finding"]


@pytest.mark.parametrize(("sink", "expected"), [("naive", []), ("keyed", ["Finding"])])
def test_a_key_may_be_absent_only_for_a_naive_sink(sink: str, expected: list[str]) -> None:
    h = History(subject=msgspec.structs.replace(SUBJECT, sink=sink))
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a")
    h.call(1, "a", operation_key=None)
    assert kinds(operation_key_stable, h) == expected


def asking() -> History:
    h = History(subject=msgspec.structs.replace(SUBJECT, recovery="ask"))
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    return h


def test_even_a_2xx_of_another_worker_must_be_asked_about() -> None:
    h = asking()
    h.call(1, "a")
    h.wait(2500)
    h.claim(2, "a")
    h.call(2, "a")
    assert kinds(asks_before_repeating, h) == ["Finding"]


def test_the_late_call_of_an_earlier_holder_is_no_takeover() -> None:
    h = asking()
    h.wait(2500)
    h.claim(2, "a")
    h.ask(2, "a", found=False)
    h.call(2, "a")
    h.call(1, "a")
    assert kinds(asks_before_repeating, h) == []


def test_a_retry_in_the_same_process_after_a_5xx_must_ask_too() -> None:
    for asks, expected in ((True, []), (False, ["Finding"])):
        h = asking()
        h.call(1, "a", 503)
        if asks:
            h.ask(1, "a", found=False)
        h.call(1, "a")
        assert kinds(asks_before_repeating, h) == expected


def test_a_fenced_sinks_refusal_of_an_old_token_is_no_content_failure() -> None:
    h = History()
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.wait(2500)
    h.claim(2, "a")
    h.call(2, "a", 503)
    h.call(1, "a", 409, outcome="stale")
    h.call(2, "a")
    assert kinds(content_fails_once, h) == []


def test_an_operators_requeue_starts_the_count_anew_and_a_release_costs_nothing() -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    for number in range(6):
        h.claim(1, "a")
        if number == 2:
            h.release(1, "a")
            continue
        h.call(1, "a", 503)
        h.fail(1, "a")
        if number == 3:
            h.move(0, "a", "other", Row("pending", token=h.row("a").token))
    assert kinds(attempts_bounded, h) == []
    for _ in range(2):
        h.claim(1, "a")
        h.call(1, "a", 503)
        h.fail(1, "a")
    assert kinds(attempts_bounded, h) == ["Finding"]
    h.claim(2, "a")
    h.call(2, "a", 503)
    (finding,) = said(attempts_bounded, h)
    assert isinstance(finding, Finding)
    assert "however, worker 1 started it for the 4th time (5 in all, tokens " in finding.sentence


def test_a_takeover_that_only_asks_is_no_start() -> None:
    h = History()
    h.start(1, 2)
    h.enqueue("a")
    for _ in range(3):
        h.claim(1, "a")
        h.call(1, "a", 503)
        h.fail(1, "a")
    h.claim(2, "a")
    h.ask(2, "a", found=True)
    h.complete(2, "a")
    assert kinds(attempts_bounded, h) == []


@pytest.mark.parametrize(("priority", "expected"), [(None, ["Finding"]), (0, [])])
def test_without_any_named_priority_all_have_the_same_and_beside_a_named_one_an_unnamed_has_no_place(
    priority: int | None, expected: list[str]
) -> None:
    h = History(subject=msgspec.structs.replace(SUBJECT, order="priority"))
    h.enqueue("older", run_at_us=EPOCH_US)
    h.enqueue("newer", run_at_us=EPOCH_US + 1)
    h.enqueue("other", run_at_us=EPOCH_US + 2, priority=priority)
    h.start(1)
    h.run(1, "newer", "older", "other")
    assert kinds(claim_order, h) == expected


def working(**subject: object) -> History:
    h = History(subject=msgspec.structs.replace(SUBJECT, **subject))
    h.start(1, 2)
    h.enqueue("a")
    return h


@pytest.mark.parametrize(
    ("heartbeat", "hurt", "expected"),
    [
        (0.5, "", ["Finding"]),
        (None, "", []),  # a queue that does not renew may outlive its lease: the repeat has its excuse
        (0.5, "signal", []),
        (0.5, "fault", []),
        (0.5, "wire", []),
        (0.5, "backend", []),
        (0.5, "death", []),
        (0.5, "stall", ["Unknown"]),
        (0.5, "asked to stop", ["Finding"]),
        (0.5, "slow sink", ["Finding"]),
    ],
)
def test_only_a_worker_that_was_left_alone_must_keep_its_lease(
    heartbeat: float | None, hurt: str, expected: list[str]
) -> None:
    h = working(heartbeat_seconds=heartbeat)
    h.claim(1, "a")
    h.call(1, "a", answered=False)
    if hurt == "signal":
        h.signal(1, "SIGSTOP")
    elif hurt == "asked to stop":
        h.signal(1, "SIGTERM")
    elif hurt == "fault":
        h.say(FaultLanded("network cut", "seen", 1))
    elif hurt == "wire":
        h.reach(1, "renewing")
    elif hurt == "slow sink":
        h.reach(1, "called", "a")
    elif hurt == "backend":
        h.say(BackendEnded(1, h.pid(1), "harness"))
    elif hurt == "death":
        h.exits(1, 1)
    elif hurt == "stall":
        h.say(Stalled(loop_lag_ms=600))
    h.wait(2500)
    h.claim(2, "a")
    assert kinds(keeps_what_it_works_on, h) == expected


@pytest.mark.parametrize(("after_ms", "expected"), [(100, []), (600, ["Finding"])])
def test_what_waited_in_a_buffer_is_looked_at_again_before_it_starts(after_ms: int, expected: list[str]) -> None:
    h = working(heartbeat_seconds=None)
    h.claim(1, "a")
    h.wait(2500)
    h.claim(2, "a")
    h.wait(after_ms)
    h.call(1, "a")
    assert kinds(keeps_what_it_works_on, h) == expected


@pytest.mark.parametrize(
    ("instead", "expected"), [("", ["Finding"]), ("renews", []), ("full hands", []), ("two looks", []), ("hurt", [])]
)
def test_a_grant_is_forgotten_only_by_one_that_asks_for_more_with_nothing_in_hand(
    instead: str, expected: list[str]
) -> None:
    h = working()
    h.claim(1, "a")
    if instead == "full hands":
        h.enqueue("b")
        h.claim(1, "b")
        h.call(1, "b", answered=False)
    if instead == "hurt":
        h.reach(1, "commit_lost", "a")
    for _ in range(2 if instead == "two looks" else 4):
        h.looks(1)
    if instead == "renews":
        h.renew(1, "a")
    h.wait(5000)
    h.claim(2, "a")
    assert kinds(claims_are_started, h) == expected


def test_a_forgotten_grant_that_nobody_ever_took_is_found_at_the_end() -> None:
    h = working()
    h.claim(1, "a")
    for _ in range(3):
        h.looks(1)
    h.waited(6, met=False)
    h.end()
    assert kinds(claims_are_started, h) == ["Finding"]


def test_a_free_job_may_be_late_when_the_machine_stalls() -> None:
    h = working()
    h.wait(9000)
    h.say(Stalled(loop_lag_ms=900))
    h.waited(13, met=False, key="a")
    wait = h.entries.pop()
    h.wait(-13000)  # the stall lies within the time that was given
    h.say(wait.what)
    assert kinds(free_jobs_are_given_out, h) == ["Unknown"]


@pytest.mark.parametrize(
    ("between", "expected"), [("", ["Finding"]), ("paused", []), ("failed once", []), ("by another", [])]
)
def test_a_failure_is_unreal_only_when_the_same_worker_had_heard_of_success(between: str, expected: list[str]) -> None:
    h = working()
    h.claim(1, "a")
    if between == "paused":
        h.signal(1, "SIGSTOP")
    if between == "failed once":
        h.call(1, "a", 503)
    h.call(1, "a")
    h.fail(2 if between == "by another" else 1, "a")
    assert kinds(failures_are_real, h) == expected


@pytest.mark.parametrize(
    ("ending", "expected"),
    [("drained", ["Finding"]), ("by the signal", []), ("killed", []), ("called", []), ("late", [])],
)
def test_who_must_give_back_at_a_shutdown(ending: str, expected: list[str]) -> None:
    h = working()
    if ending != "late":
        h.claim(1, "a")
    if ending == "called":
        h.call(1, "a", answered=False)
    h.signal(1, "SIGTERM")
    if ending == "late":
        h.claim(1, "a")  # under way when the signal came
    if ending == "killed":
        h.kill(1)
    else:
        h.exits(1, -15 if ending == "by the signal" else 0)
    h.end()
    assert kinds(gives_back_at_shutdown, h) == expected


@pytest.mark.parametrize(("group", "expected"), [("g", []), (None, ["Finding"])])
def test_a_job_that_may_wait_for_its_group_was_not_passed_over(group: str | None, expected: list[str]) -> None:
    h = History(subject=msgspec.structs.replace(SUBJECT, order="run_at"))
    h.enqueue("first", group=group, run_at_us=EPOCH_US)
    h.enqueue("second", group=group, run_at_us=EPOCH_US + 1)
    h.enqueue("other", run_at_us=EPOCH_US + 2)
    h.start(1, 2)
    h.claim(1, "first")
    h.run(2, "other", "second")
    assert kinds(claim_order, h) == expected


@pytest.mark.parametrize(
    ("restarts", "asked", "expected"),
    [("never", False, ["Finding"]), ("never", True, ["Unknown"]), ("always", False, ["Unknown"])],
)
def test_a_queue_whose_workers_all_leave_unasked_loses_its_jobs(
    restarts: str, asked: bool, expected: list[str]
) -> None:
    h = working(restarts=restarts)
    for worker in (1, 2):
        if asked:
            h.signal(worker, "SIGTERM")
        h.exits(worker, 1)
    h.waited(6, met=False, idle=0)
    h.end()
    assert kinds(no_lost_job, h) == expected


@pytest.mark.parametrize(("asked", "expected"), [(False, ["Finding"]), (True, [])])
def test_what_is_put_back_after_a_call_was_a_start_unless_the_worker_was_told_to_stop(
    asked: bool, expected: list[str]
) -> None:
    h = working(max_attempts=1)
    for _ in range(2):
        h.claim(1, "a")
        h.call(1, "a", 503)
        if asked:
            h.signal(1, "SIGTERM")
        h.release(1, "a")
    assert kinds(attempts_bounded, h) == expected


def test_a_rescue_after_the_exit_does_not_excuse_what_was_kept() -> None:
    h = working()
    h.claim(1, "a")
    h.signal(1, "SIGTERM")
    h.exits(1)
    h.wait(2500)
    h.release(2, "a")
    h.run(2, "a")
    h.end()
    assert kinds(gives_back_at_shutdown, h) == ["Finding"]


def test_a_look_that_seems_to_name_a_job_is_a_look() -> None:
    h = working()
    h.claim(1, "a")
    for _ in range(4):
        h.say(Attempted(h.session(1), 1, h.pid(1), ("claim",), "update jobs ... limit ?", 0, jobs=("id-a",)))
    h.wait(5000)
    h.claim(2, "a")
    assert kinds(claims_are_started, h) == ["Finding"]


@pytest.mark.parametrize(
    ("ago_ms", "granted", "expected"), [(500, 0, ["Unknown"]), (3000, 0, ["Finding"]), (500, 2, ["Finding"])]
)
def test_a_job_that_waits_its_turn_while_others_end_is_not_lost(ago_ms: int, granted: int, expected: list[str]) -> None:
    h = working()
    h.enqueue("b")
    for _ in range(granted):  # not waiting: it is tried again and again
        h.claim(1, "a")
        h.call(1, "a", 503)
        h.release(1, "a")
    h.wait(6000)
    h.run(1, "b")
    h.wait(ago_ms)
    h.waited(0, met=False)
    wait = h.entries.pop()
    h.say(msgspec.structs.replace(wait.what, seconds=6.0))
    h.end()
    assert kinds(no_lost_job, h) == expected


def test_what_a_refused_claim_had_locked_is_not_known() -> None:
    for sqlstate, expected in ((None, ["Finding"]), ("40001", [])):
        h = History(subject=msgspec.structs.replace(SUBJECT, order="run_at"))
        h.enqueue("older", run_at_us=EPOCH_US)
        h.enqueue("newer", run_at_us=EPOCH_US + 1)
        h.start(1, 2)
        h.say(Attempted(h.session(2), 2, h.pid(2), ("claim",), "claim", 0, sqlstate=sqlstate))
        h.run(1, "newer", "older")
        assert kinds(claim_order, h) == expected


@pytest.mark.parametrize(("ago_ms", "expected"), [(1000, ["Unknown"]), (5000, ["Finding"])])
def test_a_job_whose_first_turn_has_only_just_come_is_not_lost(ago_ms: int, expected: list[str]) -> None:
    h = working()
    h.wait(8000)
    h.claim(1, "a")
    h.wait(ago_ms)
    h.waited(0, met=False)
    wait = h.entries.pop()
    h.say(msgspec.structs.replace(wait.what, seconds=10.0))
    h.end()
    assert kinds(no_lost_job, h) == expected


@pytest.mark.parametrize(("came_since", "expected"), [(True, ["Finding"]), (False, ["Unknown"])])
def test_a_queue_to_which_no_more_jobs_came_is_not_blamed_for_its_backlog(
    came_since: bool, expected: list[str]
) -> None:
    h = History()
    h.start(1)
    h.enqueue("a")
    h.run(1, "a")
    h.say(FaultLanded("server restarted", "a new connection is refused"))
    if came_since:
        h.enqueue("b")
    h.wait(9000)
    h.say(Waited(RECOVERY, 9.0, 1, met=False))
    assert kinds(backlog_recovers, h) == expected
