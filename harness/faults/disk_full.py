"""The disk of the server's data is full."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg

from harness.contracts.fault import Landed, fault
from harness.faults.server_restarted import reachable
from harness.faults.target import Target, own_server
from harness.history.recorder import DeadlinePassed

FILLER = "filler"
BLOCK_BYTES = 1024 * 1024
ROWS = 200_000


def small_disk(target: Target) -> str | None:
    """Needs a small disk of the server's own that may be filled."""
    if target.server is None:
        return own_server(target)
    return None if target.server.disk is not None else "the server has no disk of its own to fill: that takes root"


@fault("disk full", strikes="server", needs=[small_disk], holds_seconds=2.0)
async def disk_full(target: Target) -> AsyncIterator[Landed]:
    """Nothing can be written any more (53100), the log included: the server may go down by itself. Healed by making room."""
    disk = target.hurt.disk
    assert disk is not None, "asked before"
    filler = disk / FILLER
    try:
        await asyncio.to_thread(_fill, filler)
        yield Landed(await _refusal(target))
    finally:
        filler.unlink(missing_ok=True)
        await target.hurt.start()
        await reachable(target)


def _fill(filler: Path) -> None:
    block = b"\0" * BLOCK_BYTES
    with filler.open("wb", buffering=0) as file:
        while block:
            try:
                written = file.write(block)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                written = 0
            if written < len(block):
                block = block[: len(block) // 2]
        os.fsync(file.fileno())


async def _refusal(target: Target) -> str:
    """What the server says to somebody who wants to write a lot."""
    try:
        async with target.connected("writer") as connection:
            await connection.execute(
                f"create temporary table queueproof_disk as select generate_series(1, {ROWS}) as n"
            )
    except psycopg.errors.DiskFull as error:
        return f"{error.diag.message_primary} ({error.sqlstate})"
    except psycopg.OperationalError as error:
        return f"the server went down: {str(error).strip().splitlines()[-1]}"
    raise DeadlinePassed(f"{ROWS} rows could be written to a disk that is full")
