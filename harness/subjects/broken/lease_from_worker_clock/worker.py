"""The reference worker, with leases by its own clock."""

import sys
from datetime import datetime, timezone

from reference_queue import worker
from reference_queue.protocol import Protocol


class OwnClock(Protocol):
    async def _grant(self, name, count, more):
        until = datetime.now(timezone.utc) + self._settings.lease
        return await super()._grant(name, count, {**more, "until": until})


worker.Protocol = OwnClock
sys.exit(worker.main())
