"""The reference worker, with leases in its own local time."""

import sys

from datetime import datetime

from reference_queue import worker
from reference_queue.protocol import Protocol

class Local(Protocol):
    async def _grant(self, name, count, more):
        until = datetime.now() + self._settings.lease
        return await super()._grant(name, count, {**more, "until": until})


worker.Protocol = Local

sys.exit(worker.main())
