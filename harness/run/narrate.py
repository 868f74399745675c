"""Tells a play while it goes on: one line for each event that matters, with its time."""

import time
from collections.abc import Callable

from harness.history.events import (
    BackendEnded,
    Blocked,
    Entry,
    FaultHealed,
    FaultLanded,
    Moved,
    Stalled,
    WorkerExited,
    WorkerStarted,
)
from harness.history.recorder import PlayRecorder


class Narrator:
    """Follows a recorder. Says nothing of what is ordinary: a job that is claimed, called for and done."""

    def __init__(self, recorder: PlayRecorder, tell: Callable[[str], None]) -> None:
        self._recorder = recorder
        self._tell = tell
        self._began = time.monotonic()
        self._holders: dict[str, int] = {}
        self._stop: Callable[[], None] = lambda: None

    def follow(self) -> None:
        """Begin to tell what is recorded."""
        self._stop = self._recorder.subscribe(self._hear)

    def stop(self) -> None:
        """Tell nothing more by itself: what follows is the closing of the play."""
        self._stop()

    def say(self, line: str) -> None:
        """Tell something of one's own."""
        self._tell(f"{time.monotonic() - self._began:7.2f} s  {line}")

    def _hear(self, entry: Entry) -> None:
        told = self._words(entry)
        if told is not None:
            self.say(told)

    def _words(self, entry: Entry) -> str | None:
        match entry.what:
            case FaultLanded(fault=fault, evidence=evidence):
                return f"landed: {fault}: {evidence}"
            case FaultHealed(fault=fault):
                return f"healed: {fault}"
            case WorkerStarted(worker=worker, incarnation=incarnation):
                return f"worker {worker} has started ({incarnation})"
            case WorkerExited(worker=worker, code=code):
                return f"worker {worker} has exited with {code}"
            case BackendEnded(worker=worker, pid=pid, by="harness"):
                return f"backend {pid} of worker {worker} is ended"
            case Blocked(worker=worker, wait=wait):
                return f"worker {worker} waits behind us ({wait})"
            case Stalled(loop_lag_ms=lag):
                return f"this machine stalled for {lag:.0f} ms"
            case Moved(change="claim", key=key, worker=worker) if key is not None:
                before = self._holders.get(key)
                self._holders[key] = worker
                return f"job {key} is taken over by worker {worker} from {before}" if before else None
            case Moved(change="complete" | "fail" | "release", key=key) if key is not None:
                self._holders.pop(key, None)
        return None
