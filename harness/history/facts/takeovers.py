"""A job passes from one worker to another: taken over, and why its holder was silent."""

from collections.abc import Iterator

from harness.contracts.fact import Fact
from harness.history.events import FaultHealed, FaultLanded
from harness.history.excuses import strikes_network
from harness.history.facts import StoryFact
from harness.history.job import Job, Transition
from harness.history.lease import Lease, lease_at
from harness.history.story import Story

NEARLY = 0.8  # of a declared lease: a queue may set aside some of it for itself


def takeovers(story: Story, *, live: bool = False) -> Iterator[tuple[Job, int, Transition, Transition]]:
    """(job, index of the later grant, earlier grant, later grant) where the earlier holder had written no result.

    ``live``: only where both were made by different worker numbers.
    """
    for job in story.jobs.values():
        for index in range(1, len(job.grants)):
            earlier, later = job.grants[index - 1], job.grants[index]
            if earlier.same_holder(later) or (live and earlier.worker == later.worker):
                continue
            span = [job.transitions[place] for place in job.span(index - 1)]
            if any(t.same_holder(earlier) and t.change in {"complete", "fail", "release", "retire"} for t in span):
                continue
            yield job, index, earlier, later


def _taken_over(story: Story) -> tuple[int, ...]:
    for _, _, earlier, later in takeovers(story):
        return (earlier.n, later.n)
    return ()


taken_over: StoryFact = Fact("taken over", _taken_over)
"""A job was granted to another worker, or another process, while an earlier grant of it had not been ended by its holder."""


def _taken_over_by_another(story: Story) -> tuple[int, ...]:
    for _, _, earlier, later in takeovers(story, live=True):
        return (earlier.n, later.n)
    return ()


taken_over_by_another: StoryFact = Fact("taken over by another worker", _taken_over_by_another)


def _paused_past_lease(story: Story) -> tuple[int, ...]:
    for worker in story.workers.values():
        for stop, resume in pauses(story, worker.number):
            for job, index, earlier, later in takeovers(story):
                inside = stop < later.began and (resume is None or later.began < resume)
                over = lease_at(story, job, job.places[index]).lease is not Lease.EARLY
                if earlier.worker == worker.number and inside and over:
                    return (stop, later.n) if resume is None else (stop, later.n, resume)
            lease = story.subject.lease_seconds
            if resume is not None and lease is not None and (story.t(resume) - story.t(stop)) / 1e9 > lease:
                return (stop, resume)
    return ()


def pauses(story: Story, worker: int) -> Iterator[tuple[int, int | None]]:
    stopped: int | None = None
    for entry in story.worker(worker).signals:
        signal = entry.what.signal
        if signal == "SIGSTOP":
            stopped = entry.n
        elif signal == "SIGCONT" and stopped is not None:
            yield stopped, entry.n
            stopped = None
    if stopped is not None:
        yield stopped, None


paused_past_lease: StoryFact = Fact("paused past its lease", _paused_past_lease)


def _leased_as_declared(story: Story) -> tuple[int, ...]:
    """A grant with a lease as long as the play's, or nearly so: the worker heeds what it is told."""
    for job in story.jobs.values():
        for grant in job.grants:
            row = grant.moved.new
            if row is None or row.lease_us is None or story.subject.lease_seconds is None:
                continue
            if row.lease_us - grant.moved.transaction_us >= story.subject.lease_seconds * 1e6 * NEARLY:
                return (grant.n,)
    return ()


leased_as_declared: StoryFact = Fact("granted for as long as the lease is declared to be", _leased_as_declared)


def _resumed(story: Story) -> tuple[int, ...]:
    for worker in story.workers.values():
        for stop, resume in pauses(story, worker.number):
            if resume is not None and worker.alive_at(resume):
                return (stop, resume)
    return ()


resumed: StoryFact = Fact("resumed after its pause", _resumed)


def _network_cut_past_lease(story: Story) -> tuple[int, ...]:
    for entry in story.faults:
        fault = entry.what
        if not strikes_network(fault):
            continue
        healed = next((h for h in story.healed if h.n > entry.n and heals(h.what, fault)), None)
        lease = story.subject.lease_seconds
        if healed is not None and lease is not None and (healed.t - entry.t) / 1e9 > lease:
            return (entry.n, healed.n)
        for _, _, earlier, later in takeovers(story):
            if earlier.worker == fault.worker and entry.n < later.began and (healed is None or later.began < healed.n):
                return (entry.n, later.n)
    return ()


def heals(event: FaultHealed, fault: FaultLanded) -> bool:
    return event.fault == fault.fault and event.worker == fault.worker


network_cut_past_lease: StoryFact = Fact("cut off the network past its lease", _network_cut_past_lease)
