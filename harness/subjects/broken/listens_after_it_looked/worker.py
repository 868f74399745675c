"""Looks, then listens, then sleeps until it is told, or for long."""

import os
import select
import threading
import time
import urllib.error
import urllib.request
from urllib.parse import quote

import psycopg

NAME = os.environ["QUEUEPROOF_WORKER"]
LEASE, BEAT = (float(os.environ[name]) for name in ("LEASE", "BEAT"))
SELDOM_SECONDS = 16
CLAIM = """
update task
set state = 'running', worker = %(name)s, version = version + 1, attempts = attempts + 1,
    lease_until = now() + make_interval(secs => %(lease)s)
where id = (
    select id from task where state = 'pending' and run_at <= now() order by run_at, id limit 1 for update skip locked
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


def beat(held):
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        while True:
            time.sleep(BEAT)
            for job, version in tuple(held.items()):
                connection.execute(
                    "update task set lease_until = now() + make_interval(secs => %s)"
                    " where id = %s and version = %s and state = 'running' and lease_until > now()",
                    (LEASE, job, version),
                )


held = {}
threading.Thread(target=beat, args=(held,), daemon=True).start()
with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
    while True:
        row = connection.execute(CLAIM, {"name": NAME, "lease": LEASE}).fetchone()
        if row is not None:
            job, key, version = row
            held[job] = version
            status = call(key)
            connection.execute(FINISH, {"id": job, "version": version, "status": status})
            del held[job]
            continue
        connection.execute("listen work")
        select.select([connection.fileno()], [], [], SELDOM_SECONDS)
        for _ in connection.notifies(timeout=0.01):
            pass
