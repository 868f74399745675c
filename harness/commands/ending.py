"""How a command ends and speaks: exit codes, sentences on standard error, signals."""

import asyncio
import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Coroutine
from typing import Any

from harness.contracts.problem import Problem
from harness.contracts.verdict import Verdict
from harness.event_loop import new_event_loop

HELD, BROKEN, USAGE, FAILED, INCONCLUSIVE, INTERRUPTED = 0, 1, 2, 3, 4, 130
EXIT_OF = {
    Verdict.PASS: HELD,
    Verdict.FAIL: BROKEN,
    Verdict.INCONCLUSIVE: INCONCLUSIVE,
    Verdict.NOT_APPLICABLE: INCONCLUSIVE,
}
EXITS = "Exit codes: 0 held, 1 broken, 2 usage, 3 harness or environment failed, 4 inconclusive, 130 interrupted."


def say(line: str) -> None:
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def run_to_the_end(work: Coroutine[Any, Any, Any]) -> Any:
    """Run to the end; SIGTERM ends the run as Ctrl-C does, with everything healed."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        loop = runner.get_loop()
        task = loop.create_task(work)
        interrupted: list[int] = []

        def stop(number: int) -> None:
            if interrupted:
                return  # cleaning up already; a second Ctrl-C must not cut that short
            interrupted.append(number)
            say("stopping: healing faults, ending workers and servers")
            task.cancel()

        problems: list[Problem] = []

        def trouble(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            """What nobody waits for has failed, such as recording what came in over a socket."""
            error = context.get("exception")
            if isinstance(error, Problem):
                if not problems and not interrupted:  # once: what follows must not cut the cleaning up short
                    task.cancel()
                problems.append(error)
            elif os.environ.get("QUEUEPROOF_TRACEBACK"):
                loop.default_exception_handler(context)
            else:
                say(f"trouble of the harness: {context.get('message')} ({type(error).__name__}: {error})")

        loop.set_exception_handler(trouble)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop, number)
        try:
            return loop.run_until_complete(task)
        except asyncio.CancelledError:
            if problems:
                raise problems[0] from None
            raise KeyboardInterrupt from None
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
            answer_signals(signal.default_int_handler)


def answer_signals(how: Any) -> None:
    """SIGTERM ends us as Ctrl-C does, also while no event loop listens for it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, how)


def typed() -> str:
    """What was typed, without a password that may stand in a connection string."""
    from harness.postgres.options import without_password

    return shlex.join(["queueproof", *(without_password(word) for word in sys.argv[1:])])


def terminal_width() -> int | None:
    """The terminal's width, or None when nobody watches."""
    if not sys.stdout.isatty():
        return None
    with contextlib.suppress(OSError):
        return os.get_terminal_size(sys.stdout.fileno()).columns
    return None
