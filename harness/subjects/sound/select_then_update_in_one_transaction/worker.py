"""A worker as most teams write it: look and lock, then mark, in one transaction; psycopg and urllib, nothing of ours."""

import os
import signal
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import quote

import psycopg

NAME = os.environ["QUEUEPROOF_WORKER"]
SINK = os.environ["QUEUEPROOF_SINK"]
POLL_SECONDS = 0.1
CALL_SECONDS = 60

FIND = """
select id from task
where (state = 'pending' and run_at <= now()) or (state = 'running' and lease_until <= now())
order by run_at, id limit 1
for update skip locked
"""
GIVE_UP = "update task set state = 'dead', worker = null, lease_until = null where id = %s and attempts >= 3 returning id"
MARK = """
update task
set state = 'running', worker = %s, version = version + 1, attempts = attempts + 1,
    lease_until = now() + interval '2 seconds'
where id = %s returning id, key, version
"""
END = """
update task set state = %s, worker = null, lease_until = null
where id = %s and state = 'running' and worker = %s and version = %s
"""
AGAIN = """
update task
set state = case when attempts >= 3 then 'dead' else 'pending' end, worker = null, lease_until = null,
    run_at = now() + interval '0.5 seconds'
where id = %s and state = 'running' and worker = %s and version = %s
"""

stopping = False


def stop(*_):
    global stopping
    stopping = True


def claim(connection):
    """A job, or None; the row is locked from the look to the mark."""
    with connection.transaction():
        found = connection.execute(FIND).fetchone()
        if found is None or connection.execute(GIVE_UP, found).fetchone():
            return None
        return connection.execute(MARK, (NAME, *found)).fetchone()


def call(key, version):
    """The status of the answer, None when none came."""
    name = quote(key, safe="")  # a header takes no line breaks
    headers = {"Idempotency-Key": name, "Fencing-Token": str(version)}
    request = urllib.request.Request(f"{SINK}/{name}", b"", headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=CALL_SECONDS) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return None


def work(connection):
    while not stopping:
        job = claim(connection)
        if job is None:
            time.sleep(POLL_SECONDS)
            continue
        identity, key, version = job
        status = call(key, version)
        if status is not None and status < 300:
            connection.execute(END, ("done", identity, NAME, version))
        elif status is not None and 400 <= status < 500 and status != 409:
            connection.execute(END, ("dead", identity, NAME, version))
        elif status != 409:  # that would be: somebody else's by now
            connection.execute(AGAIN, (identity, NAME, version))


def main():
    signal.signal(signal.SIGTERM, stop)
    while not stopping:
        try:
            with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True, connect_timeout=5) as connection:
                work(connection)
        except psycopg.OperationalError:
            time.sleep(POLL_SECONDS)
    return 0


sys.exit(main())
