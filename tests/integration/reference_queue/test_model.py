"""The model and the real queue, side by side: any order of moves, from several connections, compared after every one.

A sequence that tells them apart shrinks to a short program of rules that can be read aloud.
"""

import dataclasses
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
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
from reference_queue.statements import packaged
from tests.integration.reference_queue.conftest import Queue
from tests.integration.reference_queue.model import CAP, Grant, Job, Model

WORKERS = st.sampled_from(["w0", "w0", "w1"])  # the same name twice: a restart under it must be fenced, too
BATCHES = st.sampled_from([1, 1, 2, 10])  # ten take everything that may run
FAILURE = {"error_class": "c", "error_code": None, "error_reason": "r", "response_id": None, "cap": "2h", "jitter": 0.0}

SET_ASIDE = ("paused", "reconcile", "dead")

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
        self.given: list[Grant] = []
        self.queue.run("truncate queue_job, queue_payload, queue_audit, queue_archive restart identity cascade")

    grants = Bundle("grants")
    sights = Bundle("sights")

    @initialize(
        target=grants,
        first_of_its_key=st.sampled_from(["pending", "pending", "dead", "dead", "paused", "reconcile"]),
        next_runs=st.booleans(),
    )
    def some_jobs(self, first_of_its_key: str, next_runs: bool) -> Any:
        for key, group, tenant in (("a", None, None), ("b", "g", None), ("c", "g", None), ("d", None, "t")):
            self.enqueue(key=key, priority=1, group=group, tenant=tenant, business_key=None, max_attempts=2)
        if first_of_its_key != "pending":
            # It has a past: whoever puts it back meets the one that came after it.
            for grant in self.claim(worker="w0", batch=2, of_tenants=False).values:
                if self.model.jobs[grant.id].key == "b":
                    self.fail(grant=grant, outcome=first_of_its_key, absent=False, at_once=False)
                else:
                    self.release(grant=grant)
        return self.claim(worker="w0", batch=2, of_tenants=False) if next_runs else multiple()

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
        self.given += rows
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
        self.given += [*second, *(first if commits else ())]
        return multiple(*second, *(first if commits else ()))

    @rule(target=grants, worker=WORKERS, batch=BATCHES)
    def take_over(self, worker: str, batch: int) -> Any:
        rows = self.connections[worker].claim(worker=worker, batch=batch, lease="1h", name="takeover")
        granted = [Grant(row["id"], row["version"], worker) for row in rows if row["state"] == "running"]
        assert granted == self.model.take_over(worker, batch)
        self.given += granted
        return multiple(*granted)

    def _replaced_grants(self) -> list[Grant]:
        jobs = self.model.jobs
        return [
            grant
            for grant in self.given
            if grant.id in jobs and jobs[grant.id].state == "running" and jobs[grant.id].version > grant.version
        ]

    @precondition(lambda self: bool(self._replaced_grants()))
    @rule(
        choice=st.randoms(use_true_random=False),
        write=st.sampled_from(["mark", "record", "complete", "fail", "renew", "release"]),
    )
    def a_replaced_grant_writes(self, choice: Any, write: str) -> None:
        """The write that a fence is for; drawn from all grants it would be rare."""
        grant = choice.choice(self._replaced_grants())
        if write == "mark":
            self.mark_calling(grant=grant)
        elif write == "record":
            self.record_result(grant=grant, phase="confirming")
        elif write == "complete":
            self.complete(grant=grant)
        elif write == "fail":
            self.fail(grant=grant, outcome="retry", absent=False, at_once=True)
        elif write == "renew":
            self.renew(first=grant, second=grant)
        else:
            self.release(grant=grant)

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
        self._move(name, seen)

    def _stale_screens(self) -> list[Job]:
        """Of running jobs that were taken over since: a person may have looked at each grant."""
        return [
            dataclasses.replace(self.model.jobs[grant.id], version=grant.version) for grant in self._replaced_grants()
        ]

    @precondition(lambda self: bool(self._stale_screens()))
    @rule(choice=st.randoms(use_true_random=False), name=st.sampled_from(["pause", "cancel"]))
    def a_person_moves_by_a_stale_screen(self, choice: Any, name: str) -> None:
        self._move(name, choice.choice(self._stale_screens()))

    @precondition(lambda self: any(job.state in SET_ASIDE for job in self.model.jobs.values()))
    @rule(choice=st.randoms(use_true_random=False), name=st.sampled_from(["resume", "requeue"]))
    def a_person_puts_back_what_was_set_aside(self, choice: Any, name: str) -> None:
        aside = [job.id for job in self.model.jobs.values() if job.state in SET_ASIDE]
        self._move(name, self.model.sight(choice.choice(aside)))

    def _move(self, name: str, seen: Job) -> None:
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


# One rule of the packaged SQL taken away in each: what the comparison is able to notice.
WEAKENED = {
    "a later job of its key runs": (
        "claim",
        "group_key not in (select busy.group_key from queue_job as busy where busy.state = 'running' and busy.group_key is not null)\n            and ",
        "",
    ),
    "a paused job holds its key": ("claim", "'running', 'paused', 'reconcile'", "'running', 'reconcile'"),
    "priority first": ("claim", "order by priority, run_at, id\n    limit", "order by run_at, id\n    limit"),
    "not before it is due": ("claim", "run_at <= now() and ", ""),
    "complete by token": ("complete", "and version = %(version)s ", ""),
    "fail by token": ("fail", "and version = %(version)s ", ""),
    "record by token": ("record_result", "and version = %(version)s ", ""),
    "mark by token": ("mark_calling", "and version = %(version)s ", ""),
    "give back by token": ("release", " and job.version = held.version", ""),
    "renew by token": ("renew", " and held.version = job.version", ""),
    "no renewal of an ended lease": ("renew", "job.lease_until > clock_timestamp() and ", ""),
    "no call on an ended lease": ("mark_calling", "and lease_until > clock_timestamp()", ""),
    "a takeover is a new token": ("takeover", "case next_state when 'running' then 1 else 0 end", "0"),
    "take over only what is over": ("takeover", "lease_until <= now() and ", ""),
    "a stale screen is refused": ("operate", "and version = %(expected_version)s", ""),
    "a move is a new token": ("operate", "version = job.version + 1", "version = job.version"),
}


@pytest.mark.timeout(600)
def test_the_model_and_the_queue_agree_on_everything(queue: Queue) -> None:
    compare(queue, examples=100)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("rule_taken_away", WEAKENED)
def test_the_comparison_notices_every_rule_that_is_taken_away(queue: Queue, rule_taken_away: str) -> None:
    name, old, new = WEAKENED[rule_taken_away]
    assert packaged(name).count(old) >= 1
    queue.replaced = {name: packaged(name).replace(old, new)}
    # An inconsistent table ends a sequence, too: the queue's own constraints are part of what notices.
    with pytest.raises((AssertionError, psycopg.IntegrityError)):
        compare(queue, examples=500, shrinks=False)
    queue.run("truncate queue_job, queue_payload, queue_audit, queue_archive restart identity cascade")


def compare(queue: Queue, examples: int, *, shrinks: bool = True) -> None:
    queue.named("set_tenant", tenant_name="t", most_running=CAP)
    connections = {name: Queue(queue.dsn, queue.replaced) for name in ("w0", "w1")}

    class Machine(SideBySide):
        pass

    Machine.queue, Machine.connections = queue, connections
    phases = (Phase.generate, Phase.shrink) if shrinks else (Phase.generate,)
    try:
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=examples,
                stateful_step_count=40,
                deadline=None,
                database=None,
                phases=phases,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        for connection in connections.values():
            connection.close()
