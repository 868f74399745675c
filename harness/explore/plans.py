"""What a statement may touch, by the server's own plan for it: one job's row, or the whole queue. In doubt, everything."""

import psycopg

from harness.contracts.subject import JobsMapping
from harness.explore.footprint import EVERYTHING, Footprint, footprint
from harness.postgres.mapping import JobTable
from harness.wire.holds import RequestView


class Plans:
    """Asks for each statement once."""

    def __init__(self, connection: psycopg.AsyncConnection, mapping: JobsMapping, table: JobTable) -> None:
        self._connection = connection

    async def prepare(self) -> None:
        """Learn about the tables."""

    def footprint(self, view: RequestView, *, moved: bool) -> Footprint:
        if not moved and "claim" in view.changes:
            return footprint(reads=["row:*"])
        return EVERYTHING
