"""The reference worker, which believes that no news is good news."""

import sys

import time

from reference_queue import worker
from reference_queue.protocol import Protocol
from reference_queue.sessions import Unknown

class Optimist(Protocol):
    async def _grant(self, name, count, more):
        if name != "claim":
            return await super()._grant(name, count, more)
        picked = await self._sessions.run(self._statements.text("pick"), {"kinds": self._kinds, "count": count})
        if not picked:
            return [], 0.0
        try:
            return await super()._grant(name, count, {"ids": [row["id"] for row in picked]})
        except Unknown:
            return picked, time.monotonic() + self._settings.lease_seconds

    async def mark_calling(self, grant):
        return worker_says(await super().mark_calling(grant))


def worker_says(ours):
    return type(ours).WON


worker.Protocol = Optimist

sys.exit(worker.main())
