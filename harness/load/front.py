"""Who produces: our own process, or Locust as a front, headless or with its web page, in one process or several, here or elsewhere."""

from collections.abc import Callable

from harness.contracts.problem import BadInput
from harness.load.producing import ProducerProcess, Production

FRONTS = ("own", "locust", "locust-web", "locust-master")
MOST_PROCESSES = 16


def front_named(text: str, host: str = "127.0.0.1") -> Callable[[], Production]:
    """What starts it: ``own``, ``locust``, ``locust:4``, ``locust-web``, or ``locust-master:3`` for workers that join it at
    ``host`` from other machines. Raises BadInput.
    """
    name, colon, number = text.partition(":")
    processes = int(number) if number.isascii() and number.isdigit() else 0 if colon else 1
    if name not in FRONTS or not 1 <= processes <= MOST_PROCESSES or (name == "own" and colon):
        raise BadInput(f'front: "{text}" is not one of {", ".join(FRONTS)}; Locust may have processes, as in locust:2')
    if name == "own":
        return ProducerProcess
    from harness.load.locust_process import LocustProcess

    if name == "locust-master":
        return lambda: LocustProcess(elsewhere=processes, host=host)
    return lambda: LocustProcess(web=name == "locust-web", processes=processes)
