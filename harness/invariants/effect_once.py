"""How often the outside world was changed for one job, against what the subject guarantees.

Rule: "effectively-once": at most one effect per job, no excuse. "at-least-once": an
effect after the first needs an excuse of its own, as in no_double_execution. What the sink deduplicated or refused is no
effect. Source: V8, V9, bug zoo B119.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.excuses import repeats
from harness.history.job import Call, Job
from harness.history.story import Story

NAME = "effect_once"


@invariant(
    serves=("Q3", "V4", "V8", "V9"),
    broken_queue="promises_once_on_a_naive_sink",
    mend=(
        "Send one operation key for all attempts to a sink that refuses a known key, or ask the sink before repeating "
        'a call. Where it can do neither, only `guarantee = "at-least-once"` can be kept.'
    ),
)
def effect_once(story: Story) -> Iterator[Finding | Unknown]:
    """No job changes the outside world more often than the subject guarantees."""
    once = story.subject.guarantee == "effectively-once"
    for job in story.jobs.values():
        if len(job.calls) < 2:
            continue
        effects = [call for call in job.calls if any(outcome == "effect" for _, outcome in call.applied)]
        if len(effects) < 2:
            continue
        if once:
            yield _finding(story, job, effects[0], effects[1], "the subject guarantees one effect per job")
            continue
        unexcused = {repeat.call.n for repeat in repeats(story, job) if repeat.excuse is None}
        for call in effects[1:]:
            if call.n in unexcused:
                yield _finding(story, job, effects[0], call, "nothing in the history excuses a repeat")
                break


def _keyed(call: Call) -> str:
    return "" if call.event.operation_key is None else f"(operation key {call.event.operation_key!r}) "


def _finding(story: Story, job: Job, first: Call, again: Call, because: str) -> Finding:
    sentence = (
        f"job {job.key!r} must not change the outside world again, because {because} and worker {first.worker}'s call of"
        f" {story.clock(first.n)} {_keyed(first)}had its effect; however, worker"
        f" {again.worker}'s call of {story.clock(again.n)} {_keyed(again)}had one too"
    )
    applied = [n for call in (first, again) for n, outcome in call.applied if outcome == "effect"]
    witness = tuple(sorted({first.n, again.n, *applied}))
    return Finding(NAME, sentence, witness, job.key, tuple(sorted({first.worker, again.worker})))
