"""What a queue under test is: facts that scenarios and invariants may rely on, free of files and parsing.

``harness.subjects`` (the loader lives in ``harness.run.subject_file``) turns a ``subject.toml`` into these values.
"""

import enum
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

LEASE_SECONDS = "{lease}"


def plain(number: float) -> str:
    """A number as people write it: 2, 0.5, never 2.0 or 5e-01."""
    return format(Decimal(repr(number)).normalize(), "f")


class Change(enum.StrEnum):
    """What one committed row transition was, in the protocol's words. Classified inside the database by the truth trigger."""

    ENQUEUE = "enqueue"
    CLAIM = "claim"
    RENEW = "renew"
    RELEASE = "release"  # running -> pending or retry, without a result
    FAIL = "fail"  # running -> retry/dead/paused/reconcile after a failure
    COMPLETE = "complete"  # -> done
    RETIRE = "retire"  # a finished row rewritten by retention, or deleted
    OTHER = "other"  # mapped columns unchanged, or a move no word fits


class State(enum.StrEnum):
    """The states a mapping may yield. A mapping that yields another text is refused at install."""

    PENDING = "pending"
    RETRY = "retry"
    RUNNING = "running"
    DONE = "done"
    DEAD = "dead"
    PAUSED = "paused"
    RECONCILE = "reconcile"
    DELETED = "deleted"

    @property
    def ended(self) -> bool:
        """Whether no worker will run the job again without an operator."""
        return self in {State.DONE, State.DEAD, State.PAUSED, State.RECONCILE, State.DELETED}


def has_ended(state: str) -> bool:
    """Whether a state that a mapping yielded is one in which a job has ended; a stranger's is not."""
    return state in set(State) and State(state).ended


@dataclass(frozen=True)
class JobsMapping:
    """SQL text expressions over the table's own columns; ``None`` where the queue has no such thing."""

    table: str
    id: str
    key: str
    state: str
    owner: str | None = None
    token: str | None = None
    lease_until: str | None = None
    attempts: str | None = None
    run_at: str | None = None
    priority: str | None = None
    group: str | None = None
    token_increasing: bool = False
    deleted: str = "deleted"  # the state that a deleted row means
    reading_from: str | None = None  # FROM clause for reading, when one table is not enough
    lease_until_declared: str | None = None  # ``lease_until`` as it was declared, where it has ``{lease}``

    def with_lease(self, lease_seconds: float) -> "JobsMapping":
        """The mapping of a queue that counts its timeout from when a job was locked, with a lease of this length."""
        declared = self.lease_until_declared or self.lease_until
        if declared is None or LEASE_SECONDS not in declared:
            return self
        filled = declared.replace(LEASE_SECONDS, plain(lease_seconds))
        return replace(self, lease_until=filled, lease_until_declared=declared)


@dataclass(frozen=True)
class PastedSql:
    """A home-made queue that is a handful of statements; the harness's own worker runs them."""

    claim: str
    complete: str
    renew: str | None = None
    fail: str | None = None
    release: str | None = None  # gives back what was not started
    retry: str | None = None  # after a system failure; left out, it is released
    expire: str | None = None


@dataclass(frozen=True)
class Broken:
    """Of a queue that is broken on purpose: the invariant that must catch it, and the scenarios in which it must."""

    letter: str  # the class of faults it stands for, A to R
    caught_by: str
    by: tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """One queue under test, as its ``subject.toml`` declares it. Durations in seconds."""

    name: str
    folder: Path
    layers: tuple[Path, ...]  # folders from the bottom of ``extends`` to ``folder``; files resolve from the top down
    guarantee: str  # "at-least-once" or "effectively-once"
    order: str  # "none", "run_at", "priority", "per-key"
    lease_seconds: float | None
    heartbeat_seconds: float | None
    poll_seconds: float | None
    takeover_within_seconds: float | None  # None: never, and that is judged as stated
    max_attempts: int | None
    sink: str  # "naive", "keyed" or "fenced": the kind it is made for
    recovery: str  # "ask" (asks the outside before repeating), "replay" (repeats with the same key) or "repeat"
    clock: str  # whose clock decides leases: "database" or "worker"
    install_sql: tuple[Path, ...]
    install_command: tuple[str, ...]
    install_after_start: bool  # tables exist only after the worker's first start
    enqueue_sql: str | None
    enqueue_command: tuple[str, ...]
    consistent_sql: str | None  # a query of its own that must return no row at any quiet moment
    worker_command: tuple[str, ...]
    worker_env: dict[str, str]
    restarts: str  # "never" or "always": what its supervisor does when the worker exits
    jobs: JobsMapping
    pasted: PastedSql | None = None
    statements: dict[str, tuple[str, ...]] = field(default_factory=dict)  # corrections: change -> statement patterns
    known: dict[str, str] = field(default_factory=dict)  # accepted findings: "scenario:invariant" -> reason
    broken: Broken | None = None  # None: it is meant to be right
