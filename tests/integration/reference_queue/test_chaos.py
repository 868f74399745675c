"""Workers killed at random while tenants are capped and groups are serial: nothing lost, nothing doubled, no cap exceeded."""

import random
import time
from collections import Counter

import pytest

from tests.integration.reference_queue.conftest import Outside, Queue, Workers


@pytest.mark.timeout(120)
def test_workers_killed_at_random(queue: Queue, outside: Outside, workers: Workers) -> None:
    chance = random.Random(7)
    at_once: Counter[str] = Counter()
    for tenant, cap in (("a", 1), ("b", 3)):
        queue.named("set_tenant", tenant_name=tenant, most_running=cap)
    for number in range(90):
        queue.enqueue(
            f"k{number}",
            tenant=[None, "a", "b"][number % 3],
            group=f"g{number % 5}" if number % 2 else None,
            max_attempts=20,
        )
    outside.behave = lambda _key: (chance.uniform(0.0, 0.1), 200)
    alive = [workers.start(f"w{number}", QUEUEPROOF_SLOTS="3") for number in range(3)]
    started, next_kill = len(alive), time.monotonic() + 1.0

    def all_done() -> bool:
        nonlocal started, next_kill
        rows = queue.run(
            "select tenant, count(*) as n from queue_job where state = 'running' and tenant is not null group by 1"
        )
        for row in rows:
            at_once[row["tenant"]] = max(at_once[row["tenant"]], row["n"])
        if time.monotonic() > next_kill and started < 7:
            next_kill = time.monotonic() + chance.uniform(0.3, 1.2)
            alive.pop(chance.randrange(len(alive))).kill()
            alive.append(workers.start(f"w{started}", QUEUEPROOF_SLOTS="3"))
            started += 1
        return not queue.run("select 1 from queue_job where state <> 'done'")

    queue.until(all_done, "all done", 90)
    assert outside.applied == {f"k{number}" for number in range(90)}
    assert at_once["a"] <= 1
    assert at_once["b"] <= 3
    twice = {key: count for key, count in Counter(key for key, _ in outside.calls).items() if count > 1}
    for key, count in twice.items():  # each repeat has its takeover, or it was a claim that a killed worker never used
        assert queue.job(key)["version"] >= count
