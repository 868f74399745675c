"""Groups, tenants and starvation: what may run beside what, under claims that are not committed yet."""

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest

from tests.integration.reference_queue.conftest import Outside, Queue, Workers

DONE = {"remote_id": None, "reason": "completed"}


def keys(rows: list) -> list[str]:
    return [row["operation_key"] for row in rows]


def complete(queue: Queue, row: dict, worker: str = "w") -> None:
    assert queue.named("complete", id=row["id"], version=row["version"], worker=worker, **DONE)


@contextlib.contextmanager
def rival(queue: Queue) -> Iterator[Queue]:
    with contextlib.closing(Queue(queue.dsn)) as other:
        yield other


def test_jobs_of_one_group_run_one_after_the_other_and_hold_up_nobody_else(queue: Queue) -> None:
    for key, group, priority in (("a1", "a", 5), ("a2", "a", 0), ("b1", "b", 9), ("free", None, 9)):
        queue.enqueue(key, group=group, priority=priority)
    first = queue.claim(batch=10)
    assert keys(first) == ["a1", "b1", "free"]  # a2 is more urgent, but a group runs in the order of its enqueues
    assert queue.claim(batch=10) == []
    complete(queue, first[0])
    assert keys(queue.claim(batch=10)) == ["a2"]


@pytest.mark.parametrize(("state", "holds"), [("paused", True), ("reconcile", True), ("retry", True), ("dead", False)])
def test_what_has_not_ended_holds_its_group(queue: Queue, state: str, holds: bool) -> None:
    queue.enqueue("a1", group="a")
    queue.enqueue("a2", group="a")
    (row,) = queue.claim(batch=10)
    queue.named(
        "fail", id=row["id"], version=1, worker="w", outcome=state, absent=False, error_class="c", error_code=None,
        error_reason="r", response_id=None, base="1h", cap="1h", jitter=0.0,
    )  # fmt: skip
    assert keys(queue.claim(batch=10)) == ([] if holds else ["a2"])


def test_an_enqueue_that_commits_late_does_not_run_beside_the_one_that_overtook_it(queue: Queue) -> None:
    with rival(queue) as late:
        late.run("begin")
        late.enqueue("a1", group="a")
        queue.enqueue("a2", group="a")
        (row,) = queue.claim(batch=10)
        assert row["operation_key"] == "a2"
        late.run("commit")
    assert queue.claim(batch=10) == []
    complete(queue, row)
    assert keys(queue.claim(batch=10)) == ["a1"]


def test_a_claim_of_the_same_group_that_cannot_be_seen_yet_is_refused_by_the_index(queue: Queue) -> None:
    """The snapshot of the second claim is older than the first one's commit: only the constraint can know."""
    queue.enqueue("a2", group="a")
    with rival(queue) as first, rival(queue) as second:
        second.run("begin isolation level repeatable read")
        second.run("select 1")
        first.claim(batch=10)
        second.run("insert into queue_job (operation_key, group_key) values ('a1', 'a')")
        second.run("update queue_job set id = default where false")
        with pytest.raises(psycopg.errors.UniqueViolation):
            second.run(
                "update queue_job set state = 'running', worker_id = 'x', lease_until = now(), attempts = 1"
                " where operation_key = 'a1'"
            )
        second.run("rollback")


def test_a_tenants_cap_counts_claims_that_are_not_committed(queue: Queue) -> None:
    queue.named("set_tenant", tenant_name="t", most_running=2)
    for number in range(5):
        queue.enqueue(f"k{number}", tenant="t")
    with rival(queue) as first, rival(queue) as second:
        first.run("begin")
        assert keys(first.claim(name="claim_of_tenants")) == ["k0"]
        second.run("begin")
        assert keys(second.claim(name="claim_of_tenants", batch=10)) == ["k1"]
        assert queue.claim(name="claim_of_tenants", batch=10) == []
        first.run("rollback")
        second.run("commit")
    assert keys(queue.claim(name="claim_of_tenants", batch=10)) == ["k0"]
    assert queue.claim(name="claim_of_tenants", batch=10) == []


def test_a_full_tenant_hides_nobody_and_gives_its_permit_back_by_leaving_running(queue: Queue) -> None:
    queue.named("set_tenant", tenant_name="full", most_running=1)
    queue.named("set_tenant", tenant_name="other", most_running=3)
    queue.named("set_tenant", tenant_name="held back", most_running=0)
    for number in range(200):
        queue.enqueue(f"f{number:03}", tenant="full", priority=-5)
    for tenant in ("other", "held back"):
        queue.enqueue(tenant, tenant=tenant)
    rows = queue.claim(name="claim_of_tenants", batch=10)
    assert keys(rows) == ["f000", "other"]
    queue.named("release", ids=[rows[0]["id"]], versions=[1], worker="w", reason="test")
    assert keys(queue.claim(name="claim_of_tenants", batch=10)) == ["f000"]
    queue.run("update queue_job set lease_until = now() where tenant = 'full' and state = 'running'")
    assert queue.claim(name="claim_of_tenants", batch=10) == []
    (heir,) = queue.claim(worker="heir", name="takeover", batch=10)  # with the same permit: it needs no free one
    complete(queue, heir, "heir")
    assert keys(queue.claim(name="claim_of_tenants", batch=10)) == ["f001"]


def test_plain_claims_leave_tenants_alone_and_a_tenant_must_be_known(queue: Queue) -> None:
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        queue.enqueue("k", tenant="unknown")
    queue.named("set_tenant", tenant_name="t", most_running=1)
    queue.enqueue("k", tenant="t")
    assert queue.claim(batch=10) == []


def test_ten_claimers_at_once_never_exceed_a_cap_of_three_and_use_it(queue: Queue) -> None:
    """Ownership by truth: every claim and every end of one is counted under the row's own lock, by a trigger."""
    queue.named("set_tenant", tenant_name="t", most_running=3)
    for number in range(120):
        queue.enqueue(f"k{number}", tenant="t", group=f"g{number % 40}" if number % 2 else None)
    most: list[int] = []
    conflicts = Counter[str]()

    def claimer(number: int) -> None:
        chance = random.Random(number)
        with rival(queue) as mine:
            while mine.run("select 1 from queue_job where state not in ('done') limit 1"):
                try:
                    rows = mine.claim(worker=f"w{number}", name="claim_of_tenants", batch=chance.choice([1, 3]))
                except psycopg.errors.UniqueViolation:
                    conflicts["conflict"] += 1
                    continue
                most.append(mine.run("select count(*) as n from queue_job where state = 'running'")[0]["n"])
                for row in rows:
                    complete(mine, row, f"w{number}")

    threads = [threading.Thread(target=claimer, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert max(most) == 3
    groups = queue.run(
        "select group_key, array_agg(j.id order by a.id) = array_agg(j.id order by j.id) as in_order from queue_audit a"
        " join queue_job j on j.id = a.job_id where reason = 'claimed' and group_key is not null group by 1"
    )
    assert len(groups) == 20
    assert all(row["in_order"] for row in groups)


def test_every_tenth_look_takes_the_oldest_however_urgent_the_others_are(
    queue: Queue, outside: Outside, workers: Workers
) -> None:
    """The bound: granted within 10 * (m + 1) looks, where m older ones are overdue before it. Here m is 0."""
    queue.enqueue("old", priority=100, run_at="2020-01-01T00:00:00Z")
    for number in range(60):
        queue.enqueue(f"urgent{number}", priority=0)
    workers.start()
    queue.until_state("old", "done")
    assert [key for key, _ in outside.calls].index("old") <= 10


def test_workers_serve_tenants_within_their_caps_beside_the_others(
    queue: Queue, outside: Outside, workers: Workers
) -> None:
    at_once = Counter[str]()
    most = Counter[str]()
    outside.behave = lambda key: (0.1, 200)
    for tenant, cap in (("a", 1), ("b", 2)):
        queue.named("set_tenant", tenant_name=tenant, most_running=cap)
        for number in range(8):
            queue.enqueue(f"{tenant}{number}", tenant=tenant)
    for number in range(8):
        queue.enqueue(f"x{number}")
    for name in ("w1", "w2"):
        workers.start(name, QUEUEPROOF_SLOTS="4")

    def all_done() -> bool:
        for row in queue.run(
            "select coalesce(tenant, 'x') as t, count(*) as n from queue_job where state = 'running' group by 1"
        ):
            at_once[row["t"]] = row["n"]
            most[row["t"]] = max(most[row["t"]], row["n"])
        return not queue.run("select 1 from queue_job where state <> 'done'")

    queue.until(all_done, "all done", 20)
    assert most["a"] == 1
    assert most["b"] == 2
    assert len(outside.calls) == 24
