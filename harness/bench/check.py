"""How many events per second are read and judged, end to end: decoding, folding, and every invariant.

The history is made up but shaped as a gate's: many plays of many jobs, with renewals, takeovers, refused late writes,
failures and answers of every class.
"""

import os
import random
import tempfile
import time
from pathlib import Path

import msgspec

from harness.history.events import Entry
from harness.history.made_up import SUBJECT, History, write
from harness.invariants import discover
from harness.run.judge import judge_history

JOBS_PER_PLAY = 400


def run(events: int = 200_000, seed: int = 1) -> dict[str, float | int | str]:
    """Make up a history of at least ``events`` entries, judge it, and return the figures."""
    with tempfile.TemporaryDirectory(prefix="queueproof-check-") as folder:
        path = Path(folder) / "history.jsonl"
        made = _make(events, random.Random(seed))
        write(path, made)
        count = len(made)
        del made
        began, busy = time.perf_counter(), time.process_time()
        judged = judge_history(path)
        seconds, busy = time.perf_counter() - began, time.process_time() - busy
        size = path.stat().st_size
    verdicts = sorted({str(each.verdict) for each in judged.values()})
    return {
        "events": count,
        "plays": len(judged),
        "invariants": len(discover()),
        "megabytes": round(size / 1e6, 1),
        "seconds": round(seconds, 3),
        "events_per_second": round(count / seconds),
        "events_per_cpu_second": round(count / busy),
        "verdicts": ", ".join(verdicts),
        "cores": os.cpu_count() or 1,
    }


def _make(events: int, chance: random.Random) -> list[Entry]:
    made: list[Entry] = []
    play = 0
    while len(made) < events:
        play += 1
        made.extend(_play(f"play {play}", chance))
    return [msgspec.structs.replace(entry, n=n) for n, entry in enumerate(made, start=1)]


def _play(name: str, chance: random.Random) -> list[Entry]:
    subject = msgspec.structs.replace(SUBJECT, order="run_at")
    history = History(name, subject=subject, must_happen=("taken over",))
    history.start(1, 2, 3, 4)
    keys = [f"{name}: job {number}" for number in range(JOBS_PER_PLAY)]
    for number, key in enumerate(keys):
        history.enqueue(key, run_at_us=number)
    for key in keys:
        _job(history, key, chance)
    return history.end()


def _job(history: History, key: str, chance: random.Random) -> None:
    first, second = chance.sample((1, 2, 3, 4), 2)
    fate = chance.random()
    if fate < 0.06:  # paused past its lease, taken over, refused
        history.claim(first, key)
        history.wait(2500)
        history.claim(second, key)
        history.call(second, key)
        history.complete(second, key)
        history.refused(first, key, "complete")
    elif fate < 0.12:  # a system failure, then again
        history.claim(first, key)
        history.call(first, key, 503)
        history.fail(first, key)
        history.run(second, key)
    elif fate < 0.15:  # a content failure
        history.claim(first, key)
        history.call(first, key, 422)
        history.fail(first, key, "dead")
    else:
        history.claim(first, key)
        if chance.random() < 0.5:
            history.renew(first, key)
        history.call(first, key)
        history.complete(first, key)
