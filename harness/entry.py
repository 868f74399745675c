"""The way in. It is ready for Ctrl-C before anything that takes time is imported, and imports nothing else itself."""

import os
import signal
from typing import NoReturn

INTERRUPTED = 130


def main() -> NoReturn:
    """The console script."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    from harness.cli import main as begin

    begin()


def _leave(_number: int, _frame: object) -> NoReturn:
    """Nothing has been started yet that would have to be ended, and an import may swallow KeyboardInterrupt, or tell of it."""
    try:
        os.write(2, b"interrupted; nothing had been started\n")
    finally:
        os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
