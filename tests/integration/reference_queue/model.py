"""A leased, fenced claim in plain Python: no database, no clock, no concurrency. What it answers, the real queue must answer.

Time is two facts per job: whether it is due, and whether its lease is over. The order of run_at is a counter.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

ACTIVE = ("pending", "retry", "running", "paused", "reconcile")
CAP = 2
RECOVERIES = 3


@dataclass
class Job:
    id: int
    key: str
    priority: int
    place: int  # in the order of run_at
    group: str | None
    tenant: str | None
    business_key: str | None
    max_attempts: int
    state: str = "pending"
    attempts: int = 0
    version: int = 0
    worker: str | None = None
    phase: str = "not_called"
    remote_id: str | None = None
    recoveries: int = 0
    due: bool = True
    lease_over: bool = False

    @property
    def order(self) -> tuple[int, int, int]:
        return (self.priority, self.place, self.id)


@dataclass(frozen=True)
class Grant:
    """What a worker believes it holds. It may be wrong."""

    id: int
    version: int
    worker: str


@dataclass
class Model:
    jobs: dict[int, Job] = field(default_factory=dict)
    archived: list[str] = field(default_factory=list)
    next_id: int = 1
    next_place: int = 0

    def enqueue(
        self,
        key: str,
        priority: int,
        group: str | None,
        tenant: str | None,
        business_key: str | None,
        max_attempts: int,
    ) -> int | None:
        job = Job(self.next_id, key, priority, self._place(), group, tenant, business_key, max_attempts)
        self.next_id += 1  # a refused insert uses up its number, too
        for other in self.jobs.values():
            if other.key == key or (
                business_key is not None and other.business_key == business_key and other.state in ACTIVE
            ):
                return None
        self.jobs[job.id] = job
        return job.id

    def _place(self) -> int:
        self.next_place += 1
        return self.next_place

    def _may_run(self, job: Job) -> bool:
        return job.state in {"pending", "retry"} and job.due and not self._waits_for_group(job)

    def _waits_for_group(self, job: Job) -> bool:
        return job.group is not None and any(
            other.group == job.group and other.state in ACTIVE and (other.id < job.id or other.state == "running")
            for other in self.jobs.values()
            if other is not job
        )

    def candidates(self, of_tenants: bool, locked: Iterable[int] = ()) -> list[Job]:
        """In order; those that another session has locked are skipped, and keep the permit that is theirs to take."""
        free = {"t": CAP - sum(job.state == "running" and job.tenant == "t" for job in self.jobs.values())}
        found = []
        for job in sorted(self.jobs.values(), key=lambda job: job.order):
            if (job.tenant is not None) != of_tenants or not self._may_run(job):
                continue
            if job.tenant is not None:
                if not free[job.tenant]:
                    continue
                free[job.tenant] -= 1
            if job.id not in locked:
                found.append(job)
        return found

    def grant(self, jobs: Sequence[Job], worker: str) -> list[Grant]:
        for job in jobs:
            job.state, job.worker, job.lease_over = "running", worker, False
            job.version += 1
            job.attempts += 1
        return [Grant(job.id, job.version, worker) for job in jobs]

    def claim(self, worker: str, batch: int, of_tenants: bool) -> list[Grant]:
        return self.grant(self.candidates(of_tenants)[:batch], worker)

    def take_over(self, worker: str, batch: int) -> list[Grant]:
        expired = sorted(
            (job for job in self.jobs.values() if job.state == "running" and job.lease_over), key=lambda job: job.order
        )
        granted = []
        for job in expired[:batch]:
            used_up = job.attempts >= job.max_attempts
            if used_up and job.phase == "not_called":
                job.state = "dead"
            elif used_up and job.recoveries >= RECOVERIES:
                job.state = "reconcile"
            else:
                job.recoveries += used_up
                job.attempts += not used_up
                job.version += 1
                job.worker, job.lease_over = worker, False
                granted.append(Grant(job.id, job.version, worker))
        return granted

    def _held(self, grant: Grant) -> Job | None:
        job = self.jobs.get(grant.id)
        ours = job is not None and (job.state, job.version, job.worker) == ("running", grant.version, grant.worker)
        return job if ours else None

    def mark_calling(self, grant: Grant) -> bool:
        job = self._held(grant)
        if job is None or job.lease_over:
            return False
        job.phase = "call_unknown"
        return True

    def record_result(self, grant: Grant, phase: str) -> bool:
        job = self._held(grant)
        if job is not None:
            job.phase, job.remote_id = phase, "r"
        return job is not None

    def complete(self, grant: Grant) -> bool:
        job = self._held(grant)
        if job is not None:
            job.state, job.phase = "done", "result_obtained"
        return job is not None

    def fail(self, grant: Grant, outcome: str, absent: bool, at_once: bool) -> bool:
        job = self._held(grant)
        if job is None:
            return False
        if outcome != "retry":
            job.state = outcome
        elif job.attempts < job.max_attempts:
            job.state, job.worker, job.due, job.place = "retry", None, at_once, self._place()
        else:
            job.state = "dead" if job.phase == "not_called" or absent else "reconcile"
        return True

    def renew(self, grant: Grant) -> str:
        job = self._held(grant)
        return "lost" if job is None else "over" if job.lease_over else "renewed"

    def release(self, grants: Iterable[Grant]) -> int:
        held = [job for grant in grants if (job := self._held(grant)) is not None]
        for job in held:
            job.state = "retry" if job.attempts > 1 else "pending"
            job.attempts -= 1
            job.worker = None
        return len(held)

    def operate(
        self, job: Job, seen: Job, from_states: Sequence[str], to_state: str, fresh: bool, phase: str | None
    ) -> str:
        """``moved``, ``stale``, or ``refused`` when a constraint forbids it."""
        if (job.state, job.version) != (seen.state, seen.version) or job.state not in from_states:
            return "stale"
        attempts = 0 if fresh else job.attempts
        if to_state in {"pending", "retry"}:
            if attempts >= job.max_attempts:
                return "refused"
            if job.state == "dead" and job.business_key is not None:
                others = (other for other in self.jobs.values() if other is not job)
                if any(other.business_key == job.business_key and other.state in ACTIVE for other in others):
                    return "refused"
        job.state, job.attempts, job.worker = to_state, attempts, None
        job.version += 1
        job.phase = phase or job.phase
        if fresh:
            job.recoveries, job.due, job.place = 0, True, self._place()
        return "moved"

    def retire(self) -> int:
        ended = [job for job in self.jobs.values() if job.state in {"done", "dead"}]
        for job in ended:
            self.archived.append(job.key)
            del self.jobs[job.id]
        return len(ended)

    def sight(self, job_id: int) -> Job:
        return replace(self.jobs[job_id])
