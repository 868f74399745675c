"""The ground that a play stands on: prepared by ``run.provision``, taken away by it afterwards."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from harness.contracts.subject import Subject
from harness.postgres.address import Address
from harness.postgres.cluster import Cluster
from harness.postgres.mapping import JobTable
from harness.processes.watchdog import Watchdog
from harness.wire.statements import StatementBook


class FillsCommand(Protocol):
    """Fills the placeholders of a subject's command and environment, for a given number of slots."""

    def __call__(self, template: str, *, slots: int) -> str: ...


@dataclass(frozen=True)
class Ground:
    """One play's database and what belongs to it. ``owner`` connects as the role that installed the subject,
    ``worker`` as the one its workers are given.
    """

    subject: Subject
    owner: Address
    worker: Address
    table: JobTable
    folder: Path
    watchdog: Watchdog
    book: StatementBook
    fill: FillsCommand
    path: str  # PATH for workers: theirs, and the server's own programs behind it
    learned: frozenset[str] = field(default_factory=frozenset)
    seed: int = 0
    own_cluster: Cluster | None = None  # when the play has a server to itself, which it may hurt
    not_ours: str = "the server is shared with other plays"
