"""Holds an advisory lock for as long as it works on a job, and connects again when it has to."""

import os
import time
import urllib.error
import urllib.request
from urllib.parse import quote

import psycopg

NAME, POLL = os.environ["QUEUEPROOF_WORKER"], float(os.environ["POLL"])


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


def connect():
    return psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)


def claim(connection):
    """Lock one candidate after another; a job whose lock is free has no holder, whatever its row says."""
    candidates = connection.execute(
        "select id from task where state in ('pending', 'running') and run_at <= now() order by run_at, id"
    ).fetchall()
    for (job,) in candidates:
        if not connection.execute("select pg_try_advisory_lock(%s)", (job,)).fetchone()[0]:
            continue
        row = connection.execute(
            "update task set state = 'running', worker = %s, attempts = attempts + 1"
            " where id = %s and state in ('pending', 'running') returning id, key",
            (NAME, job),
        ).fetchone()
        if row is not None:
            return row
        connection.execute("select pg_advisory_unlock(%s)", (job,))
    return None


def insist(connection, text, values):
    try:
        connection.execute(text, values)
        return connection
    except psycopg.OperationalError:
        connection = connect()
        connection.execute(text, values)
        return connection


connection = connect()
while True:
    try:
        job = claim(connection)
    except psycopg.OperationalError:
        connection = connect()
        continue
    if job is None:
        time.sleep(POLL)
        continue
    status = call(job[1])
    state = "done" if status < 300 else "dead" if status < 500 else "pending"
    connection = insist(
        connection, "update task set state = %s, run_at = now() + interval '0.3 seconds' where id = %s", (state, job[0])
    )
    connection = insist(connection, "select pg_advisory_unlock(%s)", (job[0],))
