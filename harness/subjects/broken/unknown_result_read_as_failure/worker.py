"""The reference worker, which takes an unknown result for a failure."""

import sys

from reference_queue import worker
from reference_queue.protocol import Ours, Protocol
from reference_queue.sessions import Unknown


class Pessimist(Protocol):
    async def complete(self, grant, remote_id, reason):
        values = {"id": grant.id, "version": grant.version, "worker": self._settings.worker, "remote_id": remote_id, "reason": reason}
        try:
            rows = await self._sessions.run(self._statements.text("complete"), values)
        except Unknown:
            await self._sessions.run(self._statements.text("put_back"), {"id": grant.id})
            return Ours.UNKNOWN
        return Ours.WON if rows else Ours.LOST


worker.Protocol = Pessimist
sys.exit(worker.main())
