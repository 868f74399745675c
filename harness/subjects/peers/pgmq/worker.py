"""Reads a message, calls the outside, and deletes, archives or gives back the message."""

import math
import os
import time
import urllib.error
import urllib.parse
import urllib.request

from pgmq import PGMQueue

LEASE = math.ceil(float(os.environ["LEASE"]))  # pgmq knows whole seconds only
POLL = float(os.environ["POLL"])
SINK = os.environ["QUEUEPROOF_SINK"]


def call(key: str) -> int:
    request = urllib.request.Request(f"{SINK}/{urllib.parse.quote(key, safe='')}", method="POST")
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status
    except urllib.error.HTTPError as refused:
        return refused.code
    except OSError:
        return 503


def main() -> None:
    queue = PGMQueue(conn_string=os.environ["DATABASE_URL"], init_extension=False)
    while True:
        message = queue.read("jobs", vt=LEASE)
        if message is None:
            time.sleep(POLL)
            continue
        status = call(message.message["key"])
        if status < 300:
            queue.delete("jobs", message.msg_id)
        elif status < 500:
            queue.archive("jobs", message.msg_id)
        else:
            queue.set_vt("jobs", message.msg_id, 0)
            time.sleep(POLL)


main()
