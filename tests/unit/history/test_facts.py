"""Facts: each is seen where it happened, and not where it did not; every sentence leads back to its fact."""

from collections.abc import Callable

import pytest

from harness.contracts.point import Point
from harness.history.events import (
    BackendEnded,
    Blocked,
    FaultHealed,
    FaultLanded,
    Reached,
    Row,
    Saw,
    Waited,
)
from harness.history.facts import (
    StoryFact,
    barriers,
    late,
    lives,
    locks,
    outcomes,
    outside,
    points,
    rescues,
    said,
    takeovers,
)
from harness.history.facts.named import fact_named
from harness.history.made_up import CLAIM_SQL, History
from harness.history.story import Story

Teller = Callable[[History], None]


def calm(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a", "b")
    h.run(1, "a")
    h.run(2, "b")


def taken_over(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.wait(2500)
    h.claim(2, "a")


def restarted(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a")
    h.kill(1)
    h.start(1)
    h.wait(2500)
    h.claim(1, "a")


def paused(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.signal(1, "SIGSTOP")
    h.wait(2500)
    h.claim(2, "a")
    h.signal(1, "SIGCONT")


def leased_for_less(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a", lease_ms=500)


def refused_late(h: History) -> None:
    paused(h)
    h.refused(1, "a", "complete")


def abstained(h: History) -> None:
    paused(h)
    h.waited(0.8, met=True)


def gave_up(h: History) -> None:
    paused(h)
    h.say(Saw(late.GAVE_UP, "worker 1 has exited", 1))


def accepted_late(h: History) -> None:
    paused(h)
    h.complete(1, "a")
    h.waited(0.8, met=True)


def called_late(h: History) -> None:
    paused(h)
    h.call(1, "a")


def cut(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.say(FaultLanded("network cut", "seen", 1))
    h.wait(2500)
    h.claim(2, "a")
    h.say(FaultHealed("network cut", 1))


def killed_claimed(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a", settles=False, read=False)
    h.reach(1, "claimed", "a")
    h.kill(1)
    h.say(BackendEnded(1, h.pid(1), "harness"))
    h.run(2, "a")


def released_before_the_kill(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.reach(1, "claimed", "a")
    h.let_go(1, "claimed")
    h.kill(1)


def orphan(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a", settles=False, read=False)
    h.reach(1, "committing", "a")
    h.kill(1)
    h.let_go(1, "committing")
    h.show()
    h.wait(2500)
    h.run(2, "a")


def reply_lost(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a")
    h.reach(1, "commit_lost", "a")


def result_lost(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.run(1, "a")
    h.reach(1, "result_lost", "a")


def barrier(h: History) -> None:
    h.start(1, 2, 3)
    for worker in (1, 2, 3):
        h.reach(worker, "snapshot", proof="one look shows 3", statement=CLAIM_SQL)
    for worker in (1, 2, 3):
        h.let_go(worker, "snapshot")
    for worker in (1, 2, 3):
        h.looks(worker)


def barrier_in_something_else(h: History) -> None:
    """As a worker that rescues before it claims may stand."""
    h.start(1, 2, 3)
    for worker in (1, 2, 3):
        h.reach(worker, "snapshot", proof="one look shows 3", statement="update jobs set state = ? where lease < now()")
    for worker in (1, 2, 3):
        h.let_go(worker, "snapshot")
    for worker in (1, 2, 3):
        h.looks(worker)


def barrier_in_nobody_knows_what(h: History) -> None:
    h.start(1, 2, 3)
    for worker in (1, 2, 3):
        h.reach(worker, "snapshot", proof="one look shows 3")
    for worker in (1, 2, 3):
        h.let_go(worker, "snapshot")
    for worker in (1, 2, 3):
        h.looks(worker)


def barrier_with_one_that_never_claims(h: History) -> None:
    h.start(1, 2, 3)
    h.looks(3)
    for worker in (1, 2, 3):
        h.reach(worker, "snapshot", proof="one look shows 3", statement=CLAIM_SQL)
    for worker in (1, 2, 3):
        h.let_go(worker, "snapshot")
    for worker in (1, 2):
        h.looks(worker)


def barrier_of_three_looks(h: History) -> None:
    h.start(1, 2, 3)
    for worker in (1, 2, 3):
        h.reach(worker, "snapshot", proof=f"look {worker}", statement=CLAIM_SQL)
    for worker in (1, 2, 3):
        h.let_go(worker, "snapshot")
    for worker in (1, 2, 3):
        h.looks(worker)


def barrier_with_an_early_bird(h: History) -> None:
    h.start(1, 2, 3)
    for worker in (1, 2):
        h.reach(worker, "snapshot", proof="one look shows 3", statement=CLAIM_SQL)
    h.let_go(1, "snapshot")
    h.reach(3, "snapshot", proof="one look shows 3", statement=CLAIM_SQL)
    h.let_go(2, "snapshot")
    h.let_go(3, "snapshot")
    for worker in (1, 2, 3):
        h.looks(worker)


def stood_in_a_rescue(h: History) -> None:
    taken_over(h)
    h.complete(2, "a")
    h.reach(2, "snapshot", statement=CLAIM_SQL)


def rescued_and_claimed_in_one_transaction(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.wait(2500)
    h.move(2, "a", "release", Row("pending"), xid=900, settles=False, read=False)
    h.claim(2, "a", xid=900)
    h.complete(2, "a")


def stood_in_a_rescue_before_its_claim(h: History) -> None:
    rescued_and_claimed_in_one_transaction(h)
    h.reach(2, "snapshot", statement="release")


def stood_in_the_claim_after_its_rescue(h: History) -> None:
    rescued_and_claimed_in_one_transaction(h)
    h.reach(2, "snapshot", statement=CLAIM_SQL)


def stood_in_a_rescue_that_ends_jobs(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.wait(2500)
    h.fail(2, "a", "dead")
    h.reach(2, "snapshot", statement="fail")


def stood_in_a_rescue_that_removes_jobs(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.wait(2500)
    h.move(2, "a", "retire", None)
    h.enqueue("a")
    h.claim(2, "a")
    h.reach(2, "snapshot", statement="retire")


def disowned(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.wait(2500)
    h.move(2, "a", "renew", Row("running"))
    h.claim(2, "a")


def stood_in_a_rescue_that_disowns(h: History) -> None:
    disowned(h)
    h.reach(2, "snapshot", statement="renew")


def stood_in_the_claim_of_what_was_disowned(h: History) -> None:
    disowned(h)
    h.reach(2, "snapshot", statement=CLAIM_SQL)


def stood_in_another_ones_renewal(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.renew(2, "a")
    h.reach(2, "snapshot", statement="renew")


def stood_where_others_end_failures(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.fail(1, "a")
    h.fail(2, "a", "dead")
    h.reach(2, "snapshot", statement="fail")


def stood_in_a_rescue_that_holds_the_row(h: History) -> None:
    taken_over(h)
    h.complete(2, "a")
    h.reach(2, "claimed", "a", statement=CLAIM_SQL)


def result_before_a_rescue(h: History) -> None:
    h.say(Saw(rescues.RESULT_BEFORE_RESCUE, "seen"))


def result_behind_a_rescue(h: History) -> None:
    h.say(Saw(rescues.RESULT_BEHIND_RESCUE, "seen"))


def stood_in_a_first_claim(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.run(1, "a")
    h.reach(2, "snapshot", statement=CLAIM_SQL)


def stood_in_something_else(h: History) -> None:
    taken_over(h)
    h.complete(2, "a")
    h.reach(2, "snapshot", statement="update jobs set lease = ?")


def skipped(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a", "b")
    h.reach(1, "claimed", "a")
    h.run(2, "b")
    h.let_go(1, "claimed")


def skipped_a_held_row(h: History) -> None:
    h.start(1)
    h.enqueue("a", "b")
    h.say(FaultLanded("row held", "backend 9 holds 1", key="a"))
    h.run(1, "b")
    h.say(FaultHealed("row held"))
    h.run(1, "a")


def deadly(h: History) -> None:
    h.start(1, 2)
    h.enqueue("a")
    h.kill(1)
    h.kill(2)


def answers(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.claim(1, "a")
    for status in (503, 422, None, 200):
        h.call(1, "a", status)


def batch(h: History) -> None:
    h.start(1)
    h.enqueue("a", "b", "c")
    for key in "abc":
        h.claim(1, key, xid=7000)


def others(h: History) -> None:
    h.start(1)
    h.enqueue("a")
    h.ask(1, "a", found=True)
    h.say(FaultLanded("server stopped", "gone"))
    h.say(Saw("a look", "x"))
    h.say(Waited("all", 1, 1, met=True))
    h.say(Blocked(1, 1, 2, "Lock/relation", "x"))
    h.say(Blocked(1, 1, 2, "Lock/transactionid", "x"))
    h.run(1, "a")


P = Point
SEEN: list[tuple[StoryFact, Teller, Teller]] = [
    (takeovers.taken_over, taken_over, calm),
    (takeovers.taken_over, restarted, calm),
    (takeovers.taken_over_by_another, taken_over, restarted),
    (takeovers.leased_as_declared, paused, leased_for_less),
    (takeovers.paused_past_lease, paused, taken_over),
    (takeovers.resumed, paused, taken_over),
    (takeovers.network_cut_past_lease, cut, taken_over),
    (points.killed_at(P.CLAIMED), killed_claimed, released_before_the_kill),
    (points.killed_at(P.COMMITTING), orphan, calm),
    (points.killed_at(P.CLAIMED), orphan, calm),  # of a single statement, one instant
    (points.backend_ended_before_commit, killed_claimed, orphan),
    (points.orphan_committed, orphan, killed_claimed),
    (locks.rolled_back_and_claimed_again, killed_claimed, orphan),
    (points.reply_lost("claim"), reply_lost, result_lost),
    (points.reply_lost("result"), result_lost, reply_lost),
    (late.late_result_refused_or_abstained, refused_late, accepted_late),
    (late.late_result_refused_or_abstained, abstained, paused),
    (late.late_result_refused_or_abstained, gave_up, taken_over),
    (late.late_write_refused_or_abstained("complete"), refused_late, accepted_late),
    (late.late_write_arrived(), refused_late, abstained),
    (late.late_write_arrived(), accepted_late, abstained),
    (late.late_call_after_takeover, called_late, abstained),
    (late.late_call_or_abstained, abstained, paused),
    (barriers.released_together(3), barrier, barrier_of_three_looks),
    (barriers.released_together(3), barrier, barrier_with_an_early_bird),
    (barriers.released_together(3), barrier, barrier_in_something_else),
    (barriers.released_together(3), barrier, barrier_in_nobody_knows_what),
    (barriers.released_together(3), barrier, barrier_with_one_that_never_claims),
    (rescues.stood_in_a_rescue, stood_in_a_rescue, stood_in_a_first_claim),
    (rescues.stood_in_a_rescue, stood_in_a_rescue, stood_in_something_else),
    (rescues.stood_in_a_rescue, stood_in_a_rescue_that_holds_the_row, stood_in_a_first_claim),
    (rescues.result_met_a_rescue, result_before_a_rescue, taken_over),
    (rescues.result_met_a_rescue, result_behind_a_rescue, taken_over),
    (rescues.stood_in_a_rescue, stood_in_a_rescue_that_ends_jobs, stood_where_others_end_failures),
    (rescues.stood_in_a_rescue, stood_in_a_rescue_that_removes_jobs, stood_in_something_else),
    (rescues.stood_in_a_rescue, stood_in_a_rescue_that_disowns, stood_in_the_claim_of_what_was_disowned),
    (rescues.stood_in_a_rescue, stood_in_a_rescue_that_disowns, stood_in_another_ones_renewal),
    (rescues.stood_in_a_rescue, stood_in_a_rescue_before_its_claim, stood_in_the_claim_after_its_rescue),
    (locks.skipped_locked_row, skipped, calm),
    (locks.skipped_locked_row, skipped_a_held_row, calm),
    (lives.worker_died_times(2), deadly, restarted),
    (lives.worker_died_times(1), restarted, calm),
    (lives.restarted_under_same_id, restarted, deadly),
    (outside.answered("2xx"), answers, deadly),
    (outside.answered("4xx"), answers, calm),
    (outside.answered("5xx"), answers, calm),
    (outside.answered("nothing"), answers, calm),
    (outcomes.more_jobs_than_slots(2), batch, calm),
    (outcomes.batch_claimed(3), batch, calm),
    (outside.asked_the_outside, others, calm),
    (said.server_was_hurt, others, cut),
    (said.fault_landed("server stopped"), others, cut),
    (said.saw("a look"), others, calm),
    (said.waited_out("all"), others, calm),
    (locks.blocked_on("table"), others, calm),
    (locks.blocked_on("row"), others, calm),
    (outcomes.ended_as("done"), calm, taken_over),
    (points.reached(P.SNAPSHOT), barrier, calm),
]


@pytest.mark.parametrize(
    ("fact", "happened", "absent"),
    [pytest.param(f, yes, no, id=f"{f.sentence}: {yes.__name__}, not {no.__name__}") for f, yes, no in SEEN],
)
def test_a_fact_is_seen_where_it_happened_and_nowhere_else(fact: StoryFact, happened: Teller, absent: Teller) -> None:
    yes, no = History(), History()
    happened(yes)
    absent(no)
    evidence = fact.evidence(Story.of(yes.entries))
    assert evidence
    assert set(evidence) <= {entry.n for entry in yes.entries}
    assert fact.evidence(Story.of(no.entries)) == ()


@pytest.mark.parametrize("fact", {f.sentence: f for f, _, _ in SEEN}.values(), ids=lambda fact: fact.sentence)
def test_a_sentence_leads_back_to_its_fact(fact: StoryFact) -> None:
    found = fact_named(fact.sentence)
    assert found is not None
    assert found.sentence == fact.sentence
    for tell in (answers, others, barrier, batch, deadly, refused_late, cut):
        h = History()
        tell(h)
        assert found.evidence(Story.of(h.entries)) == fact.evidence(Story.of(h.entries))


@pytest.mark.parametrize("make", [points.killed_at, points.paused_at, points.reached])
@pytest.mark.parametrize("point", list(Point))
def test_every_point_has_its_sentence(make: Callable[[Point], StoryFact], point: Point) -> None:
    sentence = make(point).sentence
    assert fact_named(sentence) is make(point)


def test_the_sentences_that_people_read() -> None:
    assert points.killed_at(Point.CLAIMED).sentence == "killed while its rows were locked"
    assert takeovers.taken_over.sentence == "taken over"
    assert fact_named("something that nobody says") is None


def test_a_takeover_needs_a_grant_that_its_holder_has_not_ended() -> None:
    h = History()
    h.start(1, 2)
    h.enqueue("a")
    h.claim(1, "a")
    h.fail(1, "a")
    h.claim(2, "a")
    assert takeovers.taken_over.evidence(Story.of(h.entries)) == ()


def test_paused_at_a_point() -> None:
    h = History()
    h.start(1)
    h.say(Reached("called", 1, 0, "a", "seen"))
    h.signal(1, "SIGSTOP")
    story = Story.of(h.entries)
    assert points.paused_at(Point.CALLED).evidence(story)
    assert not points.paused_at(Point.CALLING).evidence(story)
