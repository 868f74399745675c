"""Renews from a task of the event loop, which its own handler blocks."""

import asyncio
import os
import signal
import urllib.error
import urllib.request
from urllib.parse import quote

import psycopg

NAME = os.environ["QUEUEPROOF_WORKER"]
LEASE, BEAT, POLL = (float(os.environ[name]) for name in ("LEASE", "BEAT", "POLL"))
CLAIM = """
update task
set state = 'running', worker = %(name)s, version = version + 1, attempts = attempts + 1,
    lease_until = now() + make_interval(secs => %(lease)s)
where id = (
    select id from task
    where (state = 'pending' and run_at <= now()) or (state = 'running' and lease_until <= now() and attempts < 3)
    order by run_at, id limit 1 for update skip locked
)
returning id, key, version
"""

FINISH = """
update task
set state = case when %(status)s < 300 then 'done' when %(status)s < 500 or attempts >= 3 then 'dead' else 'pending' end,
    worker = null, lease_until = null, run_at = case when %(status)s >= 500 then now() + interval '0.5 seconds' else run_at end
where id = %(id)s and state = 'running' and version = %(version)s
"""


def call(key):
    """The status of one call; a broken connection counts as 503."""
    request = urllib.request.Request(f"{os.environ['QUEUEPROOF_SINK']}/{quote(key, safe='')}", data=b"", method="POST")
    request.add_header("Idempotency-Key", quote(key, safe=""))
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return 503


async def beat(held):
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        while True:
            await asyncio.sleep(BEAT)
            for job, version in tuple(held.items()):
                await connection.execute(
                    "update task set lease_until = now() + make_interval(secs => %s)"
                    " where id = %s and version = %s and state = 'running' and lease_until > now()",
                    (LEASE, job, version),
                )


async def main():
    held = {}
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    beating = asyncio.create_task(beat(held))
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        while not stopping.is_set():
            row = await (await connection.execute(CLAIM, {"name": NAME, "lease": LEASE})).fetchone()
            if row is None:
                await asyncio.sleep(POLL)
                continue
            job, key, version = row
            held[job] = version
            status = call(key)  # blocks the loop, and with it the heartbeat
            await connection.execute(FINISH, {"id": job, "version": version, "status": status})
            del held[job]
    beating.cancel()


asyncio.run(main())
