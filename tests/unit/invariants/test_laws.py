"""Laws of judging: one job's findings do not depend on other jobs, on how they interleave, or on judging twice."""

from collections import Counter

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.history.events import (
    Attempted,
    Called,
    Entry,
    Moved,
    Noticed,
    SessionClosed,
    SessionOpened,
    Settled,
)
from harness.history.made_up import SUBJECT, History
from harness.history.story import Story
from harness.invariants import discover
from harness.run.judge import judge

SUBJECTS = [
    SUBJECT,
    msgspec.structs.replace(SUBJECT, guarantee="effectively-once", recovery="ask"),
    msgspec.structs.replace(SUBJECT, has_lease=False, has_token=False, max_attempts=None),
]
MOVES = st.tuples(
    st.sampled_from(
        ["claim", "call", "fail call", "complete", "fail", "release", "renew", "refused", "wait", "kill", "ask"]
    ),
    st.integers(1, 2),
)
SCRIPTS = st.lists(MOVES, max_size=14)


def play(script: list[tuple[str, int]], number: int, subject_number: int) -> list[Entry]:
    """One job's history, whatever its two workers do to it; every number in it is its own."""
    h = History("law", SUBJECTS[subject_number])
    key, offset = f"job {number}", number * 10
    h.start(offset + 1, offset + 2)
    h.enqueue(key)
    for what, who in script:
        worker = offset + who
        match what:
            case "claim":
                h.claim(worker, key)
            case "call":
                h.call(worker, key)
            case "fail call":
                h.call(worker, key, 503)
            case "complete":
                h.complete(worker, key)
            case "fail":
                h.fail(worker, key)
            case "release":
                h.release(worker, key)
            case "renew":
                h.renew(worker, key)
            case "refused":
                h.refused(worker, key, "complete")
            case "wait":
                h.wait(2500)
            case "kill":
                h.kill(worker)
            case "ask":
                h.ask(worker, key, found=False)
    return [msgspec.structs.replace(entry, what=apart(entry, number)) for entry in h.end()[1:-1]]


def apart(entry: Entry, number: int) -> object:
    """Numbers of sessions, calls, transactions and truth rows that no other job uses."""
    shift = number * 100_000
    event = entry.what
    match event:
        case Moved() | Noticed():
            event = msgspec.structs.replace(event, seq=event.seq + shift, xid=event.xid + shift)
    match event:
        case Noticed() | Settled() | Attempted() | SessionOpened() | SessionClosed():
            event = msgspec.structs.replace(event, session=event.session + shift)
        case Called():
            event = msgspec.structs.replace(event, call=event.call + shift)
    if hasattr(event, "call") and not isinstance(event, Called):
        event = msgspec.structs.replace(event, call=event.call + shift)
    return event


def merged(parts: list[list[Entry]], order: list[int], subject_number: int) -> Story:
    """The parts in one history, each in its own order, interleaved by ``order`` and then by turns."""
    h = History("law", SUBJECTS[subject_number])
    queues = [list(part) for part in parts]
    entries = h.entries[:1]
    turns = [turn % len(queues) for turn in order] + [n for n, queue in enumerate(queues) for _ in queue]
    for turn in turns:
        if queues[turn]:
            entries.append(queues[turn].pop(0))
    return Story.of(
        [msgspec.structs.replace(entry, n=n, t=n * 1000) for n, entry in enumerate(entries, start=1)], "law"
    )


def verdicts(story: Story) -> dict[str | None, Counter[str]]:
    found: dict[str | None, Counter[str]] = {}
    for finding in judge(story).findings:
        found.setdefault(finding.key, Counter())[finding.invariant] += 1
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(SCRIPTS, min_size=1, max_size=3), st.lists(st.integers(0, 5), max_size=60), st.integers(0, 2))
def test_interleaving_and_company_change_nothing(
    scripts: list[list[tuple[str, int]]], order: list[int], subject: int
) -> None:
    parts = [play(script, number, subject) for number, script in enumerate(scripts)]
    together = verdicts(merged(parts, order, subject))
    alone: dict[str | None, Counter[str]] = {}
    for part in parts:
        alone |= verdicts(merged([part], [], subject))
    assert together == alone


@settings(max_examples=60, deadline=None)
@given(SCRIPTS, st.integers(0, 2))
def test_no_history_makes_a_judge_fall_and_judging_twice_says_the_same(
    script: list[tuple[str, int]], subject: int
) -> None:
    story = merged([play(script, 1, subject)], [], subject)
    once = judge(story)
    assert once == judge(story)
    assert not [j for j in once.judgements if any("itself failed" in unknown.reason for unknown in j.unknowns)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), max_size=12))
def test_a_fenced_protocol_is_never_accused(script: list[tuple[int, int]]) -> None:
    """A queue that grants by lease, fences by token and asks before repeating holds, whatever its workers suffer."""
    h = History(
        "sound", msgspec.structs.replace(SUBJECT, guarantee="effectively-once", recovery="ask", max_attempts=None)
    )
    h.start(1, 2, 3)
    h.enqueue("a")
    holder, called, over = 0, False, False
    for worker, fate in script:
        if h.row("a").state == "done":
            break
        if holder == 0 or over:
            h.claim(worker, "a")
            if called:
                h.ask(worker, "a", found=True)
            holder, over = worker, False
        if fate == 1 and worker == holder:
            if not called:
                h.call(worker, "a")
            h.complete(worker, "a")
        elif fate == 2 and worker == holder and not called:
            h.call(worker, "a")
            called = True
        elif fate == 3 and worker != holder:
            h.refused(worker, "a", "complete")
        elif fate == 4:
            h.wait(2500)
            over = True
    judged = judge(Story.of(h.end()))
    assert judged.findings == ()


def test_every_invariant_is_found_and_says_what_it_serves() -> None:
    found = discover()
    assert len(found) >= 19
    for each in found:
        assert each.serves
        assert each.broken_queue
        assert each.title
    assert len({each.name for each in found}) == len(found)
