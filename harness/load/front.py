"""Who produces: our own process, or Locust as a front, headless or with its web page."""

from collections.abc import Callable

from harness.load.producing import ProducerProcess, Production

FRONTS = ("own",)


def front_named(name: str) -> Callable[[], Production]:
    """What starts it."""
    assert name in FRONTS
    return ProducerProcess
