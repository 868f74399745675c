"""Looks at its lease before it writes, by a clock that stopped when its transaction began."""

import os
import time
import urllib.error
import urllib.request
from urllib.parse import quote

import psycopg

NAME = os.environ["QUEUEPROOF_WORKER"]
LEASE, POLL = (float(os.environ[name]) for name in ("LEASE", "POLL"))
CLAIM = """
update task
set state = 'running', worker = %(name)s, version = version + 1, attempts = attempts + 1,
    lease_until = now() + make_interval(secs => %(lease)s)
where id = (
    select id from task
    where (state = 'pending' and run_at <= now()) or (state = 'running' and lease_until <= now() and attempts < 3)
    order by run_at, id limit 1 for update skip locked
)
returning id, key, lease_until
"""

# With clock_timestamp() in place of now() it would hold for as long as nothing keeps the write waiting.
FINISH = """
update task
set state = case when %(status)s < 300 then 'done' when %(status)s < 500 or attempts >= 3 then 'dead' else 'pending' end,
    worker = null, lease_until = null, run_at = case when %(status)s >= 500 then now() + interval '0.5 seconds' else run_at end
where id = %(id)s and state = 'running' and %(lease_until)s > now()
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


with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
    while True:
        row = connection.execute(CLAIM, {"name": NAME, "lease": LEASE}).fetchone()
        if row is None:
            time.sleep(POLL)
            continue
        status = call(row[1])
        with connection.transaction():
            connection.execute(FINISH, {"id": row[0], "lease_until": row[2], "status": status})
