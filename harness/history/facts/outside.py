"""What the outside world answered, and was asked."""

from functools import cache

from harness.contracts.fact import Fact
from harness.history.facts import StoryFact
from harness.history.story import Story

CLASSES = {"2xx": "done", "4xx": "a content failure", "5xx": "a system failure", "nothing": "a broken connection"}


@cache
def answered(status: str) -> StoryFact:
    """The sink answered a call with this class: "2xx", "4xx", "5xx", or "nothing" when the connection broke."""
    said = CLASSES[status]

    def evidence(story: Story) -> tuple[int, ...]:
        for call in story.calls.values():
            if call.answered is not None:
                got = "nothing" if call.status is None else f"{call.status // 100}xx"
                if got == status:
                    return (call.n, call.answered)
        return ()

    return Fact(f"a call was answered {status}: {said}", evidence)


def _in_flight_past_its_lease(story: Story) -> tuple[int, ...]:
    lease = story.subject.lease_seconds
    for call in story.calls.values():
        if lease is not None and call.answered is not None and (story.t(call.answered) - call.t) / 1e9 > lease:
            return (call.n, call.answered)
    return ()


in_flight_past_its_lease: StoryFact = Fact("a call was in flight for longer than a lease", _in_flight_past_its_lease)


def _asked(story: Story) -> tuple[int, ...]:
    return next(((job.asks[0].n,) for job in story.jobs.values() if job.asks), ())


asked_the_outside: StoryFact = Fact("it asked the outside world", _asked)
