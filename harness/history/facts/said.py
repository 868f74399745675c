"""What scenarios and faults say of themselves: injected, seen, waited for."""

from functools import cache

from harness.contracts.fact import Fact
from harness.history.excuses import strikes_server
from harness.history.facts import StoryFact
from harness.history.story import Story


def _server_was_hurt(story: Story) -> tuple[int, ...]:
    return next(((entry.n,) for entry in story.faults if strikes_server(entry.what)), ())


server_was_hurt: StoryFact = Fact("the server was hurt", _server_was_hurt)


@cache
def fault_landed(fault: str) -> StoryFact:
    """A fault of this name took effect."""

    def evidence(story: Story) -> tuple[int, ...]:
        for entry in story.faults:
            if entry.what.fault == fault:
                return (entry.n,)
        return ()

    return Fact(f"the fault '{fault}' landed", evidence)


@cache
def saw(what: str) -> StoryFact:
    """The scenario saw this with its own eyes and recorded it."""

    def evidence(story: Story) -> tuple[int, ...]:
        return tuple(entry.n for entry in story.saws if entry.what.what == what)[:3]

    return Fact(f"seen: {what}", evidence)


@cache
def waited_out(what: str) -> StoryFact:
    """A stated wait was met in its time."""

    def evidence(story: Story) -> tuple[int, ...]:
        met = (e.n for e in story.waits if e.what.what == what and e.what.met)
        return next(((n,) for n in met), ())

    return Fact(f"in time: {what}", evidence)
