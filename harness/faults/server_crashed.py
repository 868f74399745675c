"""One backend dies of SIGKILL, and the server takes every session down with it."""

from collections.abc import AsyncIterator

import psycopg

from harness.contracts.fault import Landed, fault
from harness.faults.server_restarted import reachable
from harness.faults.target import Target, own_server, shown


@fault("server crashed", strikes="server", needs=[own_server], holds_seconds=0)
async def server_crashed(target: Target) -> AsyncIterator[Landed]:
    """SIGKILL to a backend, as by the out-of-memory killer: every session ends, and the server recovers by itself."""
    async with target.connected("doomed") as doomed:
        pid = doomed.info.backend_pid
        async with target.connected("witness") as witness:
            target.hurt.backend_kill9(pid)

            async def ended() -> bool:
                try:
                    await witness.execute("select 1")
                except psycopg.OperationalError:
                    return True
                return False

            await shown(ended, within_seconds=5, reason="the crash to reach another session")
    yield Landed(f"backend {pid} was killed, and a session that had nothing to do with it ended as well")
    await reachable(target)
