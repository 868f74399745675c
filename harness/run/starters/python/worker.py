"""Takes one job at a time, calls the outside, and writes down how it went. Put your own worker in its place.

What queueproof gives it: DATABASE_URL, QUEUEPROOF_SINK (the outside), QUEUEPROOF_WORKER (its name), and what
subject.toml lists under env. What it must do: POST $QUEUEPROOF_SINK/<job key> once per job, and obey the answer.
"""

import http.client
import os
import time
from urllib.parse import quote, urlsplit

import psycopg

WORKER = os.environ["QUEUEPROOF_WORKER"]
SINK = urlsplit(os.environ["QUEUEPROOF_SINK"])
LEASE_SECONDS = float(os.environ["LEASE"])
POLL_SECONDS = float(os.environ["POLL"])
CALL_SECONDS = 60

CLAIM = """
update jobs
set status = 'busy', worker = %(worker)s, version = version + 1,
    lease_until = now() + make_interval(secs => %(lease)s)
where id = (
    select id from jobs
    where status = 'new' or (status = 'busy' and lease_until < now())
    order by id
    limit 1
    for update skip locked
)
returning id, payload->>'key', version
"""
RESULT = """
update jobs set status = %(status)s, worker = null, lease_until = null
where id = %(id)s and status = 'busy' and worker = %(worker)s and version = %(version)s
"""


def call(key: str, version: int) -> int:
    """The handler: one call to the outside. A connection that breaks is the outside's failure, like a 5xx."""
    path = quote(key, safe="")
    connection = http.client.HTTPConnection(SINK.hostname or "", SINK.port, timeout=CALL_SECONDS)
    try:
        headers = {"Idempotency-Key": path, "Fencing-Token": str(version)}
        connection.request("POST", f"{SINK.path}/{path}", headers=headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 503
    finally:
        connection.close()


def status_after(answer: int) -> str:
    """2xx done; 4xx: the job is at fault and is not tried again; anything else: the outside is, so try again."""
    if 200 <= answer < 300:
        return "done"
    return "failed" if 400 <= answer < 500 else "new"


def main() -> None:
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        while True:
            job = connection.execute(CLAIM, {"worker": WORKER, "lease": LEASE_SECONDS}).fetchone()
            if job is None:
                time.sleep(POLL_SECONDS)
                continue
            identity, key, version = job
            status = status_after(call(key, version))
            connection.execute(RESULT, {"status": status, "id": identity, "worker": WORKER, "version": version})
            if status == "new":
                time.sleep(POLL_SECONDS)


if __name__ == "__main__":
    main()
