"""The client of the wire benchmark, a process of its own: ``select 1`` over and over.

``psycopg`` is what a Python worker does; ``libpq`` calls PQexec in C, so that next to nothing but the server and whatever
stands before it is measured.
"""

import json
import selectors
import statistics
import sys
import time
from collections.abc import Callable

import psycopg
from psycopg import pq

REQUEST = b"select 1"


def _connect() -> pq.abc.PGconn:
    connection = pq.PGconn.connect(b"")  # libpq reads PGHOST and the rest of its environment
    if connection.status != pq.ConnStatus.OK:
        sys.exit(connection.error_message.decode(errors="replace"))
    return connection


def one(request: Callable[[], object], seconds: float) -> list[int]:
    """Nanoseconds of each request, one after the other."""
    clock = time.perf_counter_ns
    took: list[int] = []
    for _ in range(50):
        request()
    end = clock() + int(seconds * 1e9)
    before = clock()
    while before < end:
        request()
        after = clock()
        took.append(after - before)
        before = after
    return took


def many(connections: int, seconds: float) -> list[int]:
    """Nanoseconds of each request on several connections, each busy all the time."""
    clock = time.perf_counter_ns
    took: list[int] = []
    began: dict[pq.abc.PGconn, int] = {}
    with selectors.DefaultSelector() as selector:
        for _ in range(connections):
            connection = _connect()
            connection.nonblocking = 1
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            began[connection] = clock()
            connection.send_query(REQUEST)
        end = clock() + int(seconds * 1e9)
        while began:
            for key, _ in selector.select(5):
                connection = key.data
                connection.consume_input()
                if connection.is_busy():
                    continue
                while connection.get_result() is not None:
                    pass
                now = clock()
                took.append(now - began[connection])
                if now < end:
                    began[connection] = now
                    connection.send_query(REQUEST)
                else:
                    del began[connection]
                    selector.unregister(connection.socket)
                    connection.finish()
    return took


def main() -> None:
    client, connections, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    if client == "psycopg":
        with psycopg.connect("", autocommit=True) as connection:
            took = one(lambda: connection.execute("select 1"), seconds)
    elif connections == 1:
        plain = _connect()
        took = one(lambda: plain.exec_(REQUEST), seconds)
        plain.finish()
    else:
        took = many(connections, seconds)
    result = {
        "requests": len(took),
        "seconds": sum(took) / 1e9 / connections,
        "p50_us": statistics.median(took) / 1000,
    }
    print(json.dumps(result))  # noqa: T201 - its standard output is the result


if __name__ == "__main__":
    main()
