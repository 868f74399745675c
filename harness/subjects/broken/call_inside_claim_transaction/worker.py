"""Claims a job, calls, and only then commits. A broken connection ends it; its supervisor starts it again."""

import os
import time
import urllib.error
import urllib.request
from urllib.parse import quote

import psycopg

CLAIM = """
update task set state = 'running', worker = %s, attempts = attempts + 1
where id = (select id from task where state = 'pending' order by id limit 1 for update skip locked)
returning id, key
"""


def call(key):
    request = urllib.request.Request(f"{os.environ['QUEUEPROOF_SINK']}/{quote(key, safe='')}", data=b"", method="POST")
    request.add_header("Idempotency-Key", quote(key, safe=""))
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status
    except urllib.error.HTTPError as refused:
        return refused.code


with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
    while True:
        with connection.transaction():
            found = connection.execute(CLAIM, (os.environ["QUEUEPROOF_WORKER"],)).fetchone()
            if found is not None:
                status = call(found[1])
                state = "done" if status < 300 else "dead" if status < 500 else "pending"
                connection.execute("update task set state = %s where id = %s", (state, found[0]))
        if found is None:
            time.sleep(float(os.environ["POLL"]))
