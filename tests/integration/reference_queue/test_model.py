"""The model and the real queue, side by side: any order of moves, from several connections, compared after every one.

A sequence that tells them apart shrinks to a short program of rules that can be read aloud.
"""

from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from reference_queue.operators import MOVES
from tests.integration.reference_queue.conftest import Queue
from tests.integration.reference_queue.model import CAP, Grant, Job, Model

WORKERS = st.sampled_from(["w0", "w0", "w1"])  # the same name twice: a restart under it must be fenced, too
BATCHES = st.integers(1, 3)
FAILURE = {"error_class": "c", "error_code": None, "error_reason": "r", "response_id": None, "cap": "2h", "jitter": 0.0}

STATE = """
select id, operation_key as key, state, attempts, version, worker_id as worker, phase, recoveries, remote_id,
    case when state in ('pending', 'retry') then run_at <= now() else true end as due,
    state = 'running' and lease_until <= now() as lease_over
from queue_job order by id
"""


class SideBySide(RuleBasedStateMachine):
    """``queue`` and ``connections`` are set by the test."""

    queue: Queue
    connections: dict[str, Queue]

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.queue.run("truncate queue_job, queue_payload, queue_audit, queue_archive restart identity cascade")

    grants = Bundle("grants")
    sights = Bundle("sights")

    @initialize()
    def some_jobs(self) -> None:
        for key, group, tenant in (("a", None, None), ("b", "g", None), ("c", "g", None), ("d", None, "t")):
            self.enqueue(key=key, priority=1, group=group, tenant=tenant, business_key=None, max_attempts=2)

    @rule(
        key=st.integers(0, 9).map("k{}".format),
        priority=st.integers(0, 1),
        group=st.sampled_from([None, None, "g"]),
        tenant=st.sampled_from([None, None, "t"]),
        business_key=st.sampled_from([None, None, None, "b"]),
        max_attempts=st.integers(1, 3),
    )
    def enqueue(self, **job: Any) -> None:
        assert self.queue.enqueue(**job) == self.model.enqueue(**job)

    @rule(target=grants, worker=WORKERS, batch=BATCHES, of_tenants=st.booleans())
    def claim(self, worker: str, batch: int, of_tenants: bool) -> Any:
        rows = self._claim(worker, batch, of_tenants)
        assert rows == self.model.claim(worker, batch, of_tenants)
        return multiple(*rows)

    def _claim(self, worker: str, batch: int, of_tenants: bool) -> list[Grant]:
        name = "claim_of_tenants" if of_tenants else "claim"
        rows = self.connections[worker].claim(worker=worker, batch=batch, lease="1h", name=name)
        return [Grant(row["id"], row["version"], worker) for row in rows]

    @rule(target=grants, batches=st.tuples(BATCHES, BATCHES), of_tenants=st.booleans(), commits=st.booleans())
    def two_claims_at_once(self, batches: tuple[int, int], of_tenants: bool, commits: bool) -> Any:
        """The first one is not committed while the second one looks; then it is, or is rolled back."""
        ours = self.model.candidates(of_tenants)[: batches[0]]
        with self.connections["w0"].connection.transaction(force_rollback=not commits):
            first = self._claim("w0", batches[0], of_tenants)
            theirs = self.model.candidates(of_tenants, locked=[job.id for job in ours])[: batches[1]]
            second = self._claim("w1", batches[1], of_tenants)
        assert [grant.id for grant in first] == [job.id for job in ours]
        if commits:
            assert first == self.model.grant(ours, "w0")
        assert second == self.model.grant(theirs, "w1")
        return multiple(*second, *(first if commits else ()))

    @rule(target=grants, worker=WORKERS, batch=BATCHES)
    def take_over(self, worker: str, batch: int) -> Any:
        rows = self.connections[worker].claim(worker=worker, batch=batch, lease="1h", name="takeover")
        granted = [Grant(row["id"], row["version"], worker) for row in rows if row["state"] == "running"]
        assert granted == self.model.take_over(worker, batch)
        return multiple(*granted)

    @rule(grant=grants)
    def mark_calling(self, grant: Grant) -> None:
        assert self._write("mark_calling", grant) == self.model.mark_calling(grant)

    @rule(grant=grants, phase=st.sampled_from(["result_obtained", "confirming"]))
    def record_result(self, grant: Grant, phase: str) -> None:
        assert self._write("record_result", grant, phase=phase, remote_id="r") == self.model.record_result(grant, phase)

    @rule(grant=grants)
    def complete(self, grant: Grant) -> None:
        assert self._write("complete", grant, remote_id=None, reason="completed") == self.model.complete(grant)

    @rule(
        grant=grants,
        outcome=st.sampled_from(["retry", "retry", "dead", "paused", "reconcile"]),
        absent=st.booleans(),
        at_once=st.booleans(),
    )
    def fail(self, grant: Grant, outcome: str, absent: bool, at_once: bool) -> None:
        base = "0s" if at_once else "1h"
        wrote = self._write("fail", grant, outcome=outcome, absent=absent, base=base, **FAILURE)
        assert wrote == self.model.fail(grant, outcome, absent, at_once)

    def _write(self, name: str, grant: Grant, **values: Any) -> bool:
        connection = self.connections[grant.worker]
        return bool(connection.named(name, id=grant.id, version=grant.version, worker=grant.worker, **values))

    @rule(first=grants, second=grants)
    def renew(self, first: Grant, second: Grant) -> None:
        ours = [grant for grant in {first, second} if grant.worker == first.worker]
        ours = list({grant.id: grant for grant in ours}.values())
        rows = self.connections[first.worker].named(
            "renew",
            ids=[grant.id for grant in ours],
            versions=[grant.version for grant in ours],
            worker=first.worker,
            lease="1h",
            longest_run="2h",
        )
        assert {row["id"]: row["fate"] for row in rows} == {grant.id: self.model.renew(grant) for grant in ours}

    @rule(grant=grants)
    def release(self, grant: Grant) -> None:
        rows = self.connections[grant.worker].named(
            "release", ids=[grant.id], versions=[grant.version], worker=grant.worker, reason="not started"
        )
        assert len(rows) == self.model.release([grant])

    @precondition(lambda self: any(job.state == "running" for job in self.model.jobs.values()))
    @rule(choice=st.randoms(use_true_random=False))
    def a_lease_ends(self, choice: Any) -> None:
        """Of all of them, or of one: the next thing that many sequences need."""
        running = [job for job in self.model.jobs.values() if job.state == "running"]
        for job in running if choice.random() < 0.5 else [choice.choice(running)]:
            self.queue.run("update queue_job set lease_until = now() where id = %(id)s", {"id": job.id})
            job.lease_over = True

    @precondition(lambda self: any(job.state == "retry" and not job.due for job in self.model.jobs.values()))
    @rule(choice=st.randoms(use_true_random=False))
    def a_retry_becomes_due(self, choice: Any) -> None:
        job = choice.choice([job for job in self.model.jobs.values() if job.state == "retry" and not job.due])
        self.queue.run("update queue_job set run_at = clock_timestamp() where id = %(id)s", {"id": job.id})
        job.due, job.place = True, self.model._place()

    @precondition(lambda self: bool(self.model.jobs))
    @rule(target=sights, choice=st.randoms(use_true_random=False))
    def a_person_looks(self, choice: Any) -> Any:
        return self.model.sight(choice.choice(list(self.model.jobs)))

    @rule(name=st.sampled_from(sorted(MOVES)), seen=sights)
    def a_person_moves(self, name: str, seen: Job) -> None:
        move = MOVES[name]
        job = self.model.jobs.get(seen.id)
        lease = self.queue.run("select lease_until from queue_job where id = %(id)s", {"id": seen.id})
        values = {
            "id": seen.id,
            "expected_state": seen.state,
            "expected_version": seen.version,
            "expected_lease": lease[0]["lease_until"] if lease else None,
            "from_states": list(move.from_states),
            "to_state": move.to_state,
            "fresh_attempts": move.fresh_attempts,
            "phase": move.phase,
            "remote_id": None,
            "operator": "ann",
            "reason": name,
        }
        try:
            happened = "moved" if self.queue.named("operate", **values) else "stale"
        except (psycopg.errors.CheckViolation, psycopg.errors.UniqueViolation):
            happened = "refused"
        expected = (
            self.model.operate(job, seen, move.from_states, move.to_state, move.fresh_attempts, move.phase)
            if job
            else "stale"
        )
        assert happened == expected

    @rule()
    def retire(self) -> None:
        (row,) = self.queue.named("retain", batch=1000, after=0, keep="-1 second")
        assert row["deleted"] == self.model.retire()

    @invariant()
    def they_agree(self) -> None:
        real = self.queue.run(STATE)
        assert [row["key"] for row in real] == [
            job.key for job in sorted(self.model.jobs.values(), key=lambda job: job.id)
        ]
        for row in real:
            job = self.model.jobs[row["id"]]
            expected = {name: getattr(job, name) for name in row}
            expected["lease_over"] = job.lease_over and job.state == "running"
            expected["due"] = job.due or job.state not in {"pending", "retry"}
            assert row == expected

    def teardown(self) -> None:
        assert self.queue.inconsistencies() == []


@pytest.mark.timeout(600)
def test_the_model_and_the_queue_agree_on_everything(queue: Queue) -> None:
    queue.named("set_tenant", tenant_name="t", most_running=CAP)
    connections = {name: Queue(queue.dsn) for name in ("w0", "w1")}

    class Machine(SideBySide):
        pass

    Machine.queue, Machine.connections = queue, connections
    try:
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=40,
                stateful_step_count=40,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        for connection in connections.values():
            connection.close()
