"""The reference worker, whose heartbeat ends when it is told to stop."""

import sys

from reference_queue import worker
from reference_queue.heartbeat import Heartbeat

beating = []


class Noted(Heartbeat):
    def start(self):
        beating.append(self)
        super().start()

    def stop(self):
        if not self._over.is_set():
            super().stop()


class Hasty(worker.Worker):
    async def _drain(self):
        beating[0].stop()
        await super()._drain()


worker.Heartbeat = Noted
worker.Worker = Hasty

sys.exit(worker.main())
