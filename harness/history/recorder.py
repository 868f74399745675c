"""Writes the history as it happens: one file, one order, one monotonic clock; and lets others wait for what it says."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import msgspec

from harness.contracts.problem import EnvironmentFailed
from harness.history.events import AnyEvent, Entry

Listener = Callable[[Entry], None]


class DeadlinePassed(Exception):
    """A wait ended without what it waited for. The message says what was awaited, for how long, and why."""


class Recorder:
    """The one writer of ``history.jsonl``. Not thread-safe on purpose: all events come from one event loop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._encoder = msgspec.json.Encoder()
        self._began_ns = time.monotonic_ns()
        self._count = 0
        try:
            # Unbuffered: what was recorded survives our own SIGKILL.
            self._file: BinaryIO = path.open("ab", buffering=0)
        except OSError as error:
            raise EnvironmentFailed(
                f"cannot write the history {path}: {error.strerror}; free some space or choose another folder with --runs"
            ) from error

    def now_ns(self) -> int:
        """Nanoseconds since the run began, on the monotonic clock that orders everything."""
        return time.monotonic_ns() - self._began_ns

    def write(self, play: str, event: AnyEvent) -> Entry:
        """Append one event and return it with its place and time. Raises EnvironmentFailed when the disk refuses."""
        entry = Entry(self._count + 1, self.now_ns(), play, event)
        line = self._encoder.encode(entry) + b"\n"
        try:
            # A disk that takes only part of a line says why when it is given the rest.
            written = self._file.write(line)
            if written != len(line):
                written += self._file.write(line[written:])
        except OSError as error:
            raise EnvironmentFailed(
                f"cannot write the history {self._path}: {error.strerror}; free some space or choose another folder with --runs"
            ) from error
        if written != len(line):
            raise EnvironmentFailed(f"cannot write the history {self._path}: the disk took only part of a line")
        self._count += 1
        return entry

    def play(self, name: str) -> "PlayRecorder":
        """The recorder of one play; its entries are also kept in memory until the play is judged."""
        return PlayRecorder(self, name)

    def close(self) -> None:
        """Close the file. Recording afterwards is a programming error."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class PlayRecorder:
    """Records one play and wakes those who wait for something in it."""

    def __init__(self, recorder: Recorder, name: str) -> None:
        self._recorder = recorder
        self.name = name
        self.entries: list[Entry] = []
        self._listeners: list[Listener] = []

    def now_ns(self) -> int:
        """Nanoseconds since the run began."""
        return self._recorder.now_ns()

    def record(self, event: AnyEvent) -> Entry:
        """Write one event, keep it, and tell the listeners, in the order in which they subscribed."""
        entry = self._recorder.write(self.name, event)
        self.entries.append(entry)
        for listener in tuple(self._listeners):
            listener(entry)
        return entry

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call ``listener`` with each later entry; the returned function ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def wait_for(
        self, wanted: Callable[[Entry], bool], *, within_seconds: float, reason: str, since: int = 0
    ) -> Entry:
        """The first entry with ``n`` above ``since`` that is wanted, already recorded or still to come.

        Raises DeadlinePassed with the reason when ``within_seconds`` have gone by.
        """
        for entry in self.entries:
            if entry.n > since and wanted(entry):
                return entry
        found: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()

        def look(entry: Entry) -> None:
            if not found.done() and wanted(entry):
                found.set_result(entry)

        unsubscribe = self.subscribe(look)
        try:
            async with asyncio.timeout(within_seconds):
                return await found
        except TimeoutError:
            raise DeadlinePassed(f"waited {within_seconds:g} s for {reason}") from None
        finally:
            unsubscribe()
