"""The grants that this process holds, shared by the event loop and the heartbeat's thread."""

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reference_queue.grants import Grant


@dataclass(frozen=True)
class HeldGrant:
    """``executing`` is false while the job waits in the local buffer."""

    grant: Grant
    executing: bool


class Held:
    """What we hold, by job id. A grant whose reply never arrived is not here: it must not be used, its lease will end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._grants: dict[int, HeldGrant] = {}

    def add(self, grants: Iterable[Grant]) -> None:
        with self._lock:
            for grant in grants:
                self._grants[grant.id] = HeldGrant(grant, executing=False)

    def start(self, grant: Grant) -> bool:
        """Count the job as executing. False when it has been lost while it waited."""
        with self._lock:
            found = self._grants.get(grant.id)
            if found is None or found.grant.version != grant.version:
                return False
            self._grants[grant.id] = replace(found, executing=True)
            return True

    def drop(self, grant: Grant) -> bool:
        """Stop holding it. False when we did not hold it any more."""
        with self._lock:
            found = self._grants.get(grant.id)
            if found is None or found.grant.version != grant.version:
                return False
            del self._grants[grant.id]
            return True

    def renewed(self, ids: Iterable[int], deadline: float) -> None:
        with self._lock:
            for job_id in ids:
                found = self._grants.get(job_id)
                if found is not None:
                    self._grants[job_id] = replace(found, grant=replace(found.grant, deadline=deadline))

    def deadline(self, grant: Grant) -> float:
        """Until when, on our monotonic clock, the lease surely lasts."""
        with self._lock:
            found = self._grants.get(grant.id)
            return found.grant.deadline if found is not None and found.grant.version == grant.version else 0.0

    def all(self) -> Sequence[Grant]:
        with self._lock:
            return [found.grant for found in self._grants.values()]

    @property
    def executing(self) -> int:
        with self._lock:
            return sum(found.executing for found in self._grants.values())

    @property
    def buffered(self) -> int:
        with self._lock:
            return sum(not found.executing for found in self._grants.values())
