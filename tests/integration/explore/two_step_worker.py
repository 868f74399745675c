"""A worker for subjects of tests: looks for a job and marks it in two requests, or holds one transaction across its call."""

import os
import time
import urllib.request

import psycopg

SINK, WORKER, POLL = os.environ["QUEUEPROOF_SINK"], os.environ["QUEUEPROOF_WORKER"], float(os.environ["POLL"])
HOW = os.environ["HOW"]


def call(key):
    request = urllib.request.Request(f"{SINK}/{key}", data=b"", method="POST", headers={"Idempotency-Key": key})
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.status


def two_steps(connection):
    look = "select id, key from task where state = 'pending' order by id limit 1"
    found = connection.execute(look).fetchone()
    if found is None:
        return False
    again = " and state = 'pending'" if HOW == "checked" else ""
    marked = connection.execute(
        f"update task set state = 'running', worker = %s, version = version + 1 where id = %s{again} returning id",
        (WORKER, found[0]),
    ).fetchone()
    if marked is not None:
        call(found[1])
        connection.execute("update task set state = 'done', worker = null where id = %s", (found[0],))
    return True


def across_call(connection):
    with connection.transaction():
        found = connection.execute(
            "select id, key from task where state = 'pending' order by id limit 1 for update skip locked"
        ).fetchone()
        if found is None:
            return False
        call(found[1])
        connection.execute("update task set state = 'done' where id = %s", (found[0],))
    return True


with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
    while True:
        if not (across_call if HOW == "across_call" else two_steps)(connection):
            time.sleep(POLL)
