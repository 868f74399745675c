"""The reference worker, which opens a connection where there was none, and never where there was one."""

import sys

from reference_queue import worker
from reference_queue.sessions import NothingHappened, Sessions


class OpensOnce(Sessions):
    _lost = False

    async def _connection(self):
        if self._lost:
            raise NothingHappened("the connection is closed")
        return await super()._connection()

    async def _close(self, connection):
        self._lost = True
        await super()._close(connection)


worker.Sessions = OpensOnce
sys.exit(worker.main())
