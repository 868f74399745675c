"""What is explored of a subject, how the subject is run for it, and what one schedule leaves to look at."""

import re
from dataclasses import dataclass, replace

from harness.contracts.subject import Subject
from harness.explore.gate import Value
from harness.explore.schedule import Move
from harness.history.events import Entry
from harness.history.story import Story
from harness.run.judge import Judged

CALM_LEASE_SECONDS = 300.0
LONGEST_LEASE_SECONDS = 2.0
POLL_SECONDS = 0.002
THE_END_OF_A_LEASE = "the end of a lease"
_PLAIN = re.compile(r'[a-z_][a-z0-9_$]*|"[^"]+"', re.IGNORECASE)


@dataclass(frozen=True)
class Case:
    """What is explored: how many workers and jobs, and the bounds of the further moves."""

    workers: int = 2
    jobs: int = 1
    expiries: int = 0
    kills: int = 0
    severs: int = 0
    polls: int = 1  # per worker, polls although there is nothing to bring
    surplus: int = 1  # grants per worker beyond those that jobs and losses explain
    lease_seconds: float = LONGEST_LEASE_SECONDS  # where leases end: long against a schedule, short to wait for

    @property
    def most_grants(self) -> int:
        """How often a worker is let look after it was granted something: a queue may hand out a job for ever."""
        return self.jobs + self.expiries + self.kills + self.severs + self.surplus

    def told(self) -> str:
        parts = [count(self.workers, "worker"), count(self.jobs, "job")]
        if self.expiries:
            parts.append(
                f"{count(self.expiries, 'lease')} ending" if self.expiries == 1 else f"{self.expiries} leases ending"
            )
        if self.kills:
            parts.append(count(self.kills, "kill"))
        if self.severs:
            parts.append("1 lost reply" if self.severs == 1 else f"{self.severs} lost replies")
        return ", ".join(parts)


def count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


Values = tuple[Value, ...] | None


@dataclass(frozen=True)
class Made:
    """One move as it was made, for telling and exporting: the statement or the call, and the entries it is told by."""

    move: Move
    what: str
    statement: str = ""
    parameters: tuple[str, ...] | None = ()  # as SQL literals; None: they are in a form that cannot be read
    first: int = 0
    last: int = 0


@dataclass(frozen=True)
class Played:
    """The detail of an ending: the play's story, what was judged, and its moves."""

    story: Story
    judged: Judged
    made: tuple[Made, ...]
    entries: tuple[Entry, ...]


def quickened(subject: Subject, case: Case) -> Subject:
    """The subject with a poll that does not keep us waiting, and a lease that does not end by itself in a schedule."""
    lease, beat, within = subject.lease_seconds, subject.heartbeat_seconds, subject.takeover_within_seconds
    if lease is not None:
        declared = lease
        lease = min(lease, case.lease_seconds) if case.expiries else max(lease, CALM_LEASE_SECONDS)
        within = within * lease / declared if within is not None else None
        beat = lease / 3 if beat is not None else None
    poll = POLL_SECONDS if subject.poll_seconds is not None else None
    return replace(
        subject, lease_seconds=lease, heartbeat_seconds=beat, poll_seconds=poll, takeover_within_seconds=within
    )


def leases_can_end(subject: Subject) -> bool:
    """Whether a lease can be ended by a plain write: its expression is a column."""
    return why_leases_cannot_end(subject) is None


def why_leases_cannot_end(subject: Subject) -> str | None:
    """What keeps a lease from being ended by a plain write, None when nothing does."""
    column = subject.jobs.lease_until
    if column is None:
        return "subject.jobs.lease_until is not mapped"
    return None if _PLAIN.fullmatch(column.strip()) else "subject.jobs.lease_until is not a plain column"


def why_no_lease_ends(subject: Subject) -> str | None:
    """Why the end of a lease that the subject has is left out, None when it is not, or there is no lease."""
    return why_leases_cannot_end(subject) if subject.lease_seconds else None
