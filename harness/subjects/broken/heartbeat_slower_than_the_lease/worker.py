"""The reference worker, with a heartbeat that comes too late."""

import sys

import dataclasses

from reference_queue import worker
from reference_queue.heartbeat import Heartbeat

class Late(Heartbeat):
    def __init__(self, settings, *rest):
        super().__init__(dataclasses.replace(settings, heartbeat_seconds=2.5), *rest)


worker.Heartbeat = Late

sys.exit(worker.main())
