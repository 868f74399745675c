"""From a sentence back to its fact."""

import re
from collections.abc import Callable

from harness.contracts.point import Point
from harness.history.facts import StoryFact
from harness.history.facts.barriers import released_together
from harness.history.facts.late import (
    late_call_after_takeover,
    late_call_or_abstained,
    late_write_arrived,
    late_write_refused_or_abstained,
)
from harness.history.facts.lives import (
    connections_broken_or_none,
    restarted_under_same_id,
    told_to_stop,
    worker_died_times,
)
from harness.history.facts.locks import blocked_on, rolled_back_and_claimed_again, skipped_locked_row
from harness.history.facts.outcomes import batch_claimed, ended_as, more_jobs_than_slots
from harness.history.facts.outside import CLASSES, answered, asked_the_outside, in_flight_past_its_lease
from harness.history.facts.points import (
    backend_ended_before_commit,
    killed_at,
    orphan_committed,
    paused_at,
    reached,
    reply_lost,
)
from harness.history.facts.rescues import result_met_a_rescue, stood_in_a_rescue
from harness.history.facts.said import fault_landed, saw, server_was_hurt, waited_out
from harness.history.facts.takeovers import (
    leased_as_declared,
    network_cut_past_lease,
    paused_past_lease,
    resumed,
    taken_over,
    taken_over_by_another,
)


def _fixed() -> dict[str, StoryFact]:
    facts = [
        taken_over,
        taken_over_by_another,
        leased_as_declared,
        paused_past_lease,
        resumed,
        network_cut_past_lease,
        backend_ended_before_commit,
        orphan_committed,
        late_call_after_takeover,
        late_call_or_abstained,
        skipped_locked_row,
        stood_in_a_rescue,
        result_met_a_rescue,
        rolled_back_and_claimed_again,
        restarted_under_same_id,
        asked_the_outside,
        server_was_hurt,
        in_flight_past_its_lease,
        told_to_stop,
        connections_broken_or_none,
        worker_died_times(1),
        more_jobs_than_slots(1),
        *(make(point) for make in (reached, killed_at, paused_at) for point in Point),
        *(reply_lost(change) for change in ("claim", "result")),
        *(
            make(change)
            for make in (late_write_refused_or_abstained, late_write_arrived)
            for change in ("result", "complete", "fail", "release", "renew")
        ),
        *(blocked_on(what) for what in ("table", "row")),
        *(answered(status) for status in CLASSES),
    ]
    return {fact.sentence: fact for fact in facts}


_FIXED = _fixed()

_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[str], StoryFact]], ...] = (
    (re.compile(r"(\d+) workers were released together in their claims"), lambda text: released_together(int(text))),
    (re.compile(r"workers died (\d+) times"), lambda text: worker_died_times(int(text))),
    (re.compile(r"more than (\d+) jobs waited at once"), lambda text: more_jobs_than_slots(int(text))),
    (re.compile(r"(\d+) jobs were claimed in one transaction"), lambda text: batch_claimed(int(text))),
    (re.compile(r"a job ended as (\w+)"), ended_as),
    (re.compile(r"the fault '(.*)' landed"), fault_landed),
    (re.compile(r"seen: (.*)", re.DOTALL), saw),
    (re.compile(r"in time: (.*)", re.DOTALL), waited_out),
)


def fact_named(sentence: str) -> StoryFact | None:
    """The fact with this sentence, None when no fact says that."""
    fixed = _FIXED.get(sentence)
    if fixed is not None:
        return fixed
    for pattern, make in _PATTERNS:
        match = pattern.fullmatch(sentence)
        if match:
            return make(match.group(1))
    return None
