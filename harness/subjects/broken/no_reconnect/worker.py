"""The reference worker, which opens connections until one breaks, and never again."""

import sys

from reference_queue import worker
from reference_queue.sessions import NothingHappened, Sessions, Unknown


class OpensOnce(Sessions):
    _lost = False

    async def run(self, text, values):
        self._lost = self._lost or any(connection.lost for connection in self._idle)
        if self._lost:
            raise NothingHappened("the connection is closed")
        try:
            return await super().run(text, values)
        except Unknown:
            self._lost = True
            raise


worker.Sessions = OpensOnce
sys.exit(worker.main())
