"""Claims as many as it has slots, calls for them all at once, and writes all results by one statement."""

import os
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import psycopg

NAME, SLOTS = os.environ["QUEUEPROOF_WORKER"], int(os.environ["QUEUEPROOF_SLOTS"])
LEASE, BEAT, POLL = (float(os.environ[name]) for name in ("LEASE", "BEAT", "POLL"))
CLAIM = """
update task
set state = 'running', worker = %(name)s, version = version + 1, attempts = attempts + 1,
    lease_until = now() + make_interval(secs => %(lease)s)
where id = any (array(
    select id from task
    where (state = 'pending' and run_at <= now()) or (state = 'running' and lease_until <= now() and attempts < 3)
    order by run_at, id limit %(slots)s for update skip locked
))
returning id, key, version
"""

# From the first to the latest.
RENEW = """
update task set lease_until = now() + make_interval(secs => %(lease)s)
where id = any (array(select id from task where worker = %(name)s and state = 'running' order by id for update))
"""

# From the latest to the first.
FINISH = """
with held as materialized (
    select task.id, answer.status
    from unnest(%(ids)s::bigint[], %(versions)s::bigint[], %(statuses)s::int[]) as answer (id, version, status)
    join task on task.id = answer.id and task.version = answer.version and task.state = 'running'
    order by task.id desc
    for update of task
)
update task
set state = case when status < 300 then 'done' when status < 500 or attempts >= 3 then 'dead' else 'pending' end,
    worker = null, lease_until = null, run_at = case when status >= 500 then now() + interval '0.5 seconds' else run_at end
from held
where task.id = held.id
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


def beat():
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        while True:
            time.sleep(BEAT)
            try:
                connection.execute(RENEW, {"name": NAME, "lease": LEASE})
            except psycopg.errors.DeadlockDetected:
                continue  # at the next beat


threading.Thread(target=beat, daemon=True).start()
with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection, ThreadPoolExecutor(SLOTS) as pool:
    while True:
        jobs = connection.execute(CLAIM, {"name": NAME, "lease": LEASE, "slots": SLOTS}).fetchall()
        if not jobs:
            time.sleep(POLL)
            continue
        answers = {
            "ids": [job[0] for job in jobs],
            "versions": [job[2] for job in jobs],
            "statuses": list(pool.map(call, [job[1] for job in jobs])),
        }
        try:
            connection.execute(FINISH, answers)
        except psycopg.errors.DeadlockDetected:
            continue  # somebody else has written to these rows: all is well
