"""The reference worker, which blames the job for what the database does."""

import sys

from reference_queue import worker
from reference_queue.failures import DEAD, Failure
from reference_queue.protocol import Ours, Protocol
from reference_queue.sessions import Conflict

class Blaming(Protocol):
    async def complete(self, grant, remote_id, reason):
        values = {"id": grant.id, "version": grant.version, "worker": self._settings.worker}
        try:
            rows = await self._sessions.run(
                self._statements.text("complete"), {**values, "remote_id": remote_id, "reason": reason}
            )
        except Conflict as conflict:
            return await self.fail(grant, Failure(DEAD, "failed", f"The job failed with {conflict}."))
        return Ours.WON if rows else Ours.LOST


worker.Protocol = Blaming

sys.exit(worker.main())
