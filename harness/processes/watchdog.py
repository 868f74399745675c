"""A separate process that outlives the harness by seconds, to end what the harness started and can no longer end."""

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.contracts.problem import EnvironmentFailed

GUARD = Path(__file__).with_name("guard.py")
FAREWELL_SECONDS = 6.0  # the guard promises 5


class Watchdog:
    """Told of process groups, servers and folders as they come and go; acts only when the harness has died.

    A pipe tells it: the operating system closes our end however we die. Register a server or a folder *before* making
    it, a group right after; ``mark`` goes into the environment of workers and covers the moment in between.
    """

    def __init__(self) -> None:
        self.mark = {"QUEUEPROOF_WATCHDOG": secrets.token_hex(8)}
        self._guard: subprocess.Popen[bytes] | None = None
        self._pipe = -1

    def start(self) -> Self:
        """Start the guard in a session of its own, where no Ctrl-C reaches it."""
        reading, self._pipe = os.pipe()
        mark = f"QUEUEPROOF_WATCHDOG={self.mark['QUEUEPROOF_WATCHDOG']}"
        try:
            self._guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(GUARD), mark],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._pipe)
            raise EnvironmentFailed(f"cannot start the watchdog process: {error.strerror}") from error
        finally:
            os.close(reading)
        return self

    @property
    def pid(self) -> int:
        """The guard's process id."""
        if self._guard is None:
            raise RuntimeError("the watchdog is not started")
        return self._guard.pid

    def watch_group(self, pgid: int) -> None:
        """End this process group when the harness dies."""
        self._tell("watch", "group", pgid)

    def forget_group(self, pgid: int) -> None:
        """The group is gone; call it before its leader is reaped."""
        self._tell("forget", "group", pgid)

    def watch_server(self, data_folder: Path) -> None:
        """Stop the server that runs, or will run, in this data folder."""
        self._tell("watch", "server", str(data_folder))

    def forget_server(self, data_folder: Path) -> None:
        """The server has stopped, or is meant to stay."""
        self._tell("forget", "server", str(data_folder))

    def watch_folder(self, folder: Path) -> None:
        """Remove this folder, with all that is in it."""
        self._tell("watch", "folder", str(folder))

    def forget_folder(self, folder: Path) -> None:
        """The folder is gone, or is meant to stay."""
        self._tell("forget", "folder", str(folder))

    def watch_container(self, name: str) -> None:
        """Remove this container."""
        self._tell("watch", "container", name)

    def forget_container(self, name: str) -> None:
        """The container is gone, or is meant to stay."""
        self._tell("forget", "container", name)

    def close(self) -> None:
        """Say goodbye: the guard exits and ends nothing."""
        self._end(b'["exit", "", ""]\n')

    def clean_up(self) -> None:
        """Have the guard end and remove, now, all that is still watched. Takes up to 5 seconds."""
        self._end(b"")

    def _end(self, farewell: bytes) -> None:
        if self._guard is None or self._pipe < 0:
            return
        try:
            os.write(self._pipe, farewell)
        except BrokenPipeError:
            pass  # somebody ended the guard before us
        finally:
            os.close(self._pipe)
            self._pipe = -1
        try:
            self._guard.wait(FAREWELL_SECONDS)
        except subprocess.TimeoutExpired:
            self._guard.kill()
            self._guard.wait()

    def _tell(self, verb: str, kind: str, what: int | str) -> None:
        line = json.dumps([verb, kind, what]).encode() + b"\n"
        try:
            os.write(self._pipe, line)
        except OSError as error:
            if verb == "watch":
                raise EnvironmentFailed(
                    f"the watchdog process is gone, so the {kind} {what} could outlive a crash; run again"
                ) from error

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After an error, what is still watched is what our own clean-up missed.
        if error is None:
            self.close()
        else:
            self.clean_up()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)
