"""The reference worker, which looks at the table only when it is woken."""

import sys

from reference_queue import worker

FOR_EVER_SECONDS = 3600.0


class OnlyWoken(worker.Worker):
    def _idle_wait(self):
        return FOR_EVER_SECONDS


worker.Worker = OnlyWoken
sys.exit(worker.main())
