"""Every acknowledged job ends, once it has been given its time with an idle worker.

Rule: done, dead, paused and reconcile count as ended; the bound is takeover_within, given
with an idle slot (a ``Waited`` entry that was not met), or after every worker had ended by itself, unasked. A stall of the
machine above half the slack makes the bound inconclusive, as does time that was not given. "never" is judged as stated: a
job that its dead or stopped holder keeps is then no finding. A job that waits its turn while others end is slow, not lost.
Source: Q11, Q16, V2, V10, bug zoo B39-B41.
"""

from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.events import Row, Waited
from harness.history.job import ENDED, Job, Seen
from harness.history.story import Story

NAME = "no_lost_job"
LIVELOCK_GRANTS = 4


@invariant(
    serves=("Q1", "Q11", "Q16", "V2", "V4", "V10"),
    broken_queue="never_takes_over",
    mend=(
        "Let a claim or a timer take over jobs whose lease is over (`state = 'running' and lease_until <= now()`), "
        "and poll besides LISTEN. Let no error (40P01, 40001, 23505) end a worker or drop an enqueue silently."
    ),
)
def no_lost_job(story: Story) -> Iterator[Finding | Unknown]:
    """Every acknowledged job ends."""
    for job in story.jobs.values():
        if not job.enqueued:
            continue
        row = job.final_row()
        if row is not None and row.state in ENDED and row.state != "deleted":
            continue
        if row is None or row.state == "deleted":
            lost = _gone(story, job)
            if lost is not None:
                yield lost
            continue
        yield from _unended(story, job, row)


def _gone(story: Story, job: Job) -> Finding | Unknown | None:
    """Judge a job whose row is not there at the end: it may have ended and been removed, or be lost."""
    acknowledged = job.enqueued[0].n
    if not job.transitions:
        if job.final is None:
            return Unknown(f"what became of job {job.key!r} is not in the history", (acknowledged,))
        sentence = (
            f"job {job.key!r} is lost, because its enqueue was acknowledged at {story.clock(acknowledged)}; however, no row of"
            " it was ever committed"
        )
        return Finding(NAME, sentence, (acknowledged, job.final.n), job.key)
    last = job.transitions[-1]
    old = last.moved.old
    answered = any(call.status is not None and call.status < 500 for call in job.calls)
    if last.worker == 0 or answered or (old is not None and old.state in ENDED) or last.change == "complete":
        return None
    sentence = (
        f"job {job.key!r} is lost, because it was {old.state if old else 'unknown'} and no call of it had been answered; however,"
        f" worker {last.worker} removed its row, by transaction {last.moved.xid}"
    )
    return Finding(NAME, sentence, (acknowledged, last.n), job.key, (last.worker,))


def _unended(story: Story, job: Job, row: Row) -> Iterator[Finding | Unknown]:
    acknowledged = job.enqueued[0].n
    bound = story.subject.takeover_within_seconds
    if bound is None and row.state == "running" and _holder_is_gone(story, job):
        return
    waits = [
        wait
        for wait in story.waits
        if not wait.what.met and (wait.what.idle_workers > 0 or _all_have_left(story, wait.n))
    ]
    enough = [wait for wait in waits if wait.what.seconds >= (bound or 0)]
    if not enough:
        given = max((wait.what.seconds for wait in waits), default=None)
        why = (
            f"it was given only {given:g} s with an idle worker, and {bound:g} s are allowed"
            if given is not None and bound is not None
            else "it was not given a stated time with an idle worker"
        )
        yield Unknown(f"job {job.key!r} is {row.state} at the end, but {why}", (acknowledged,))
        return
    wait = enough[-1]
    stall = _stall(story, wait)
    if stall is not None:
        yield Unknown(
            f"job {job.key!r} is {row.state} at the end, but the machine stalled for {stall[1]:.0f} ms", (stall[0],)
        )
        return
    busy = _working_off(story, job, row, wait)
    if busy is not None:
        yield Unknown(
            f"job {job.key!r} is {row.state} at the end, but the queue was still working off its backlog",
            (busy, wait.n),
        )
        return
    yield _stuck(story, job, row, wait)


def _hands(wait: Waited) -> str:
    return f"{wait.idle_workers} idle worker(s)" if wait.idle_workers else "workers that had all left by themselves"


def _stuck(story: Story, job: Job, row: Row, wait: Seen[Waited]) -> Finding:
    holder = job.grants[-1] if job.grants else None
    held = f", last granted to worker {holder.worker}{holder.with_token}" if holder else ""
    livelock = f"; it was granted {len(job.grants)} times, a livelock" if len(job.grants) >= LIVELOCK_GRANTS else ""
    sentence = (
        f"job {job.key!r} had to end, because its enqueue was acknowledged at {story.clock(job.enqueued[0].n)} and"
        f" {wait.what.seconds:g} s were given with {_hands(wait.what)}; however, it is still {row.state}"
        f"{held}{livelock}"
    )
    shown = [job.enqueued[0].n, *([holder.n] if holder else []), wait.n, *([job.final.n] if job.final else [])]
    return Finding(NAME, sentence, tuple(shown), job.key, (holder.worker,) if holder else ())


def _working_off(story: Story, job: Job, row: Row, wait: Seen[Waited]) -> int | None:
    """Of a job that waits its turn: the end of another job shortly before the wait was over. That is slow, and not lost. Of one
    whose first turn came so late that no takeover is due yet: that turn.
    """
    bound_ns = (story.subject.takeover_within_seconds or 0) * 1e9
    if row.state == "running" and len(job.grants) == 1 and story.t(job.grants[0].began) > wait.t - bound_ns:
        return job.grants[0].n  # its first turn has only just come
    if row.state not in {"pending", "retry"} or len(job.grants) > 1:
        return None
    since = wait.t - bound_ns / 2
    for other in story.jobs.values():
        if other is job:
            continue
        for transition in reversed(other.transitions):
            new, old = transition.moved.new, transition.moved.old
            ended = new is not None and new.state in ENDED and (old is None or old.state not in ENDED)
            if ended and transition.n < wait.n and story.t(transition.n) > since:
                return transition.n
    return None


def _all_have_left(story: Story, n: int) -> bool:
    """Whether every worker had ended by itself, unasked: a queue whose workers leave has no idle one left to give."""
    if story.subject.restarts != "never" or not story.workers:
        return False
    lives = [(worker, worker.incarnations[-1]) for worker in story.workers.values() if worker.incarnations]
    return bool(lives) and all(
        life.exited is not None and life.exited < n and life.killed is None and not worker.signals
        for worker, life in lives
    )


def _holder_is_gone(story: Story, job: Job) -> bool:
    if not job.grants:
        return False
    worker = story.worker(job.grants[-1].worker)
    end = story.waits[-1].n if story.waits else (job.final.n if job.final is not None else story.entries[-1].n)
    stopped = bool(worker.signals) and worker.signals[-1].what.signal == "SIGSTOP"
    return stopped or not worker.alive_at(end) or len(worker.incarnations) > 1


def _stall(story: Story, wait: Seen[Waited]) -> tuple[int, float] | None:
    """A stall of the machine inside the wait, longer than half of the time that was given beyond the lease."""
    began = wait.t - wait.what.seconds * 1e9
    slack_ms = max(0.0, wait.what.seconds - (story.subject.lease_seconds or 0)) * 1000
    for stall in story.stalls:
        longest = max(stall.what.loop_lag_ms, stall.what.select_one_ms)
        if began <= stall.t <= wait.t and longest > slack_ms / 2:
            return stall.n, longest
    return None
