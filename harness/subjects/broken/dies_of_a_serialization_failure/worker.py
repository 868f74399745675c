"""The reference worker, which does not survive a conflict."""

import sys

import os

from reference_queue import worker
from reference_queue.protocol import Protocol
from reference_queue.sessions import Conflict

class Fragile(Protocol):
    async def _grant(self, name, count, more):
        batch = self._statements.text(name, 1)
        values = {"kinds": self._kinds, "worker": self._settings.worker, "lease": self._settings.lease, **more}
        if name == "claim":
            try:
                rows = await self._sessions.run(batch, values)
            except Conflict:
                os._exit(1)
            return rows, worker.time.monotonic() + self._settings.lease_seconds
        return await super()._grant(name, count, more)


worker.Protocol = Fragile

sys.exit(worker.main())
