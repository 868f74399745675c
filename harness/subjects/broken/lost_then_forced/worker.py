"""The reference worker, which does not take no for an answer."""

import sys

from reference_queue import worker
from reference_queue.protocol import Ours, Protocol


class Insistent(Protocol):
    async def complete(self, grant, remote_id, reason):
        ours = await super().complete(grant, remote_id, reason)
        if ours is Ours.LOST:
            await self._sessions.run(self._statements.text("force"), {"id": grant.id})
        return ours


worker.Protocol = Insistent
sys.exit(worker.main())
