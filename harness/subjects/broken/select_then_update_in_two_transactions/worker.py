"""The reference worker, with a claim of two steps."""

import sys

from reference_queue import worker
from reference_queue.protocol import Protocol


class TwoSteps(Protocol):
    async def _grant(self, name, count, more):
        if name == "claim":
            # The locks are gone when this statement's transaction ends, which is at once.
            found = await self._sessions.run(self._statements.text("find"), {"kinds": self._kinds, "count": count})
            if not found:
                return [], 0.0
            more = {"ids": [row["id"] for row in found]}
        return await super()._grant(name, count, more)


worker.Protocol = TwoSteps
sys.exit(worker.main())
