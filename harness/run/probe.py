"""The calm first run: learns which statement makes which transition, and what of the subject can be stopped or judged.

If probing fails, nothing else is judged: a queue that cannot be driven at all has not been proven wrong.
"""

import asyncio
import contextlib
import time
from dataclasses import dataclass

from harness.contracts.point import Point
from harness.contracts.problem import BadInput, SubjectFailed
from harness.contracts.subject import has_ended
from harness.history.events import Answered, Began, Called, Ended, Moved, SessionOpened, TruthIncomplete, WorkerExited
from harness.history.recorder import DeadlinePassed, PlayRecorder
from harness.history.subject_facts import facts_of
from harness.lab.lab import Lab
from harness.lab.worker import LabWorker
from harness.run.provision import Site
from harness.wire.statements import StatementBook

CONNECT_SECONDS = 20
ENQUEUED_SECONDS = 5  # an acknowledgement means that it is committed
CALL_SECONDS = 20
END_SECONDS = 10
FAILURE_SECONDS = 5
MOST_EXITS = 3  # of a worker that its supervisor starts again, before it has ever connected
RESULTS = frozenset({"complete", "fail", "release"})


@dataclass(frozen=True)
class Probed:
    """What the calm run taught. ``learned`` are changes that a worker of the subject was seen to make."""

    book: StatementBook
    learned: frozenset[str]
    stops_at: dict[Point, str]  # "yes", or why not
    seconds: float


async def probe(site: Site, recorder: PlayRecorder, seed: int) -> Probed:
    """Run one worker through a done, a long, a refused and a failing job. Raises SubjectFailed in a sentence that says which."""
    began = time.monotonic()
    book = StatementBook()
    for change, patterns in site.subject.statements.items():
        book.correct(change, patterns)
    recorder.record(Began(scenario="probe", subject=facts_of(site.subject), seed=seed))
    trouble: str | None = None
    try:
        async with site.ground(recorder.name, book, frozenset()) as ground, Lab(ground, recorder, learning=True) as lab:
            await _calm(lab)
    except BadInput as error:
        trouble = str(error)
        raise
    except (SubjectFailed, DeadlinePassed) as error:
        trouble = str(error)
        raise SubjectFailed(str(error)) from error
    finally:
        recorder.record(Ended(trouble, "subject" if trouble else ""))
    _complain(next((e.what.why for e in recorder.entries if isinstance(e.what, TruthIncomplete)), None))
    learned = frozenset(
        entry.what.change for entry in recorder.entries if isinstance(entry.what, Moved) and entry.what.worker
    )
    return Probed(book, learned, _stops(book, learned), time.monotonic() - began)


def _complain(incomplete: str | None) -> None:
    """A mapping that fails on a real row would make every verdict inconclusive: say so before anything is played."""
    if incomplete is not None:
        raise BadInput(f"subject.jobs: {incomplete}")


async def _calm(lab: Lab) -> None:
    worker = lab.worker()
    await worker.start()
    await _connects(lab, worker)
    await _works(lab, worker)
    await _renews(lab)
    await _fails(lab, 422)
    await _fails(lab, 503)
    await worker.terminate(within_seconds=3)


async def _connects(lab: Lab, worker: LabWorker) -> None:
    try:
        await _alive_until(lab, worker, SessionOpened, CONNECT_SECONDS)
    except DeadlinePassed as error:
        if worker.tls_refused:
            raise SubjectFailed(_insists_on_tls(lab, worker)) from error
        raise SubjectFailed(
            f"the worker of {lab.subject.name} runs, but did not connect to the database within {CONNECT_SECONDS} s:"
            f" it must use DATABASE_URL or PGHOST, PGPORT, ... from its environment.{_said(worker)}"
        ) from error


async def _works(lab: Lab, worker: LabWorker) -> None:
    (key,) = await lab.enqueue(1)
    try:
        await lab.eventually(lambda: lab.state_of(key) is not None, within_seconds=ENQUEUED_SECONDS, reason="its row")
    except DeadlinePassed as error:
        _complain(lab.watch.truth.error)
        raise SubjectFailed(
            f"the enqueue of job {key!r} was acknowledged, but no row of {lab.subject.jobs.table} has that key by"
            f" subject.jobs.key ({lab.subject.jobs.key}): check it, and subject.enqueue"
        ) from error
    try:
        await _alive_until(lab, worker, Called, CALL_SECONDS)
    except DeadlinePassed as error:
        state = lab.state_of(key)
        raise SubjectFailed(
            f"the worker of {lab.subject.name} is connected, but did not call the sink within {CALL_SECONDS} s of the"
            f" enqueue (the job is {state}): its handler must POST to"
            f" $QUEUEPROOF_SINK/<job key>.{_said(worker)}"
        ) from error
    call = next(e.what for e in lab.recorder.entries if isinstance(e.what, Called))
    if call.key != key:
        raise SubjectFailed(
            f"the handler called the sink for {call.key[:80]!r}, but the job's key is {key!r}:"
            " it must POST to $QUEUEPROOF_SINK/<job key>, percent-encoded"
        )
    if not await lab.drained([key], within_seconds=END_SECONDS):
        _complain(lab.watch.truth.error)
        raise SubjectFailed(
            f"the job {key!r} was called and answered with 200, but did not end within {END_SECONDS} s: by the mapping"
            f" of subject.jobs.state it is {lab.state_of(key) or 'not in the table'}.{_said(worker)}"
        )


async def _alive_until(
    lab: Lab, worker: LabWorker, kind: type[SessionOpened] | type[Called], within_seconds: float
) -> None:
    """Wait for an event of that kind, but not longer than the worker lives."""
    deadline = time.monotonic() + within_seconds
    while not any(isinstance(entry.what, kind) for entry in lab.recorder.entries):
        _complain(lab.watch.truth.error)
        if not worker.running and worker.tls_refused:
            raise SubjectFailed(_insists_on_tls(lab, worker))
        codes = [entry.what.code for entry in lab.recorder.entries if isinstance(entry.what, WorkerExited)]
        if not worker.running and lab.subject.restarts == "never":
            raise SubjectFailed(
                f"the worker of {lab.subject.name} exited by itself{_with(codes)}, before it"
                f" {'connected to the database' if kind is SessionOpened else 'called the sink'}.{_said(worker)}"
            )
        # Not so before a call: a worker that looks for work once and ends has connected.
        if not worker.running and kind is SessionOpened and len(codes) >= MOST_EXITS:
            raise SubjectFailed(
                f"the worker of {lab.subject.name} exits{_with(codes)} before it connects to the database, and did so"
                f" {len(codes)} times (it is started again, as subject.worker.restarts says).{_said(worker)}"
            )
        if time.monotonic() > deadline:
            raise DeadlinePassed(f"waited {within_seconds:g} s")
        await asyncio.sleep(0.01)


def _with(codes: list[int]) -> str:
    """How it ended last."""
    if not codes:
        return ""
    return f" with code {codes[-1]}" if codes[-1] >= 0 else f" of signal {-codes[-1]}"


def _insists_on_tls(lab: Lab, worker: LabWorker) -> str:
    return (
        f"the worker of {lab.subject.name} insists on TLS, which the wire between it and the database does not speak:"
        f" have it connect with sslmode=prefer or disable here.{_said(worker)}"
    )


def _said(worker: LabWorker) -> str:
    tail = worker.tail()
    return f" The end of its own output:\n{tail}" if tail.strip() else " It has printed nothing."


async def _renews(lab: Lab) -> None:
    """Keep one handler busy for some heartbeats, to see one."""
    heartbeat = lab.subject.heartbeat_seconds
    if heartbeat is None:
        return
    hold = lab.sink.hold(Point.CALLED)
    (key,) = await lab.enqueue(1)
    await hold.reached(CALL_SECONDS)
    with contextlib.suppress(DeadlinePassed):  # a queue that never renews is told so by what does not apply
        await lab.until(
            lambda event: isinstance(event, Moved) and event.key == key and event.change == "renew",
            within_seconds=heartbeat * 3 + 1,
            reason="a renewal",
        )
    hold.release()
    await lab.drained([key], within_seconds=END_SECONDS)


async def _fails(lab: Lab, status: int) -> None:
    """Refuse one job, to see how a failure is written."""
    first = len(lab.keys) + 1
    key = f"probe-{first}"
    script = lab.sink.answer_with(status, key=key, times=1)
    await lab.enqueue([key])
    answered = await lab.recorder.wait_for(
        lambda entry: isinstance(entry.what, Answered) and entry.what.key == key,
        within_seconds=CALL_SECONDS,
        reason=f"the handler to call for job {key!r}, to be answered with {status}",
    )
    with contextlib.suppress(DeadlinePassed):
        await lab.until(
            lambda event: isinstance(event, Moved) and event.key == key and event.change in RESULTS,
            within_seconds=FAILURE_SECONDS,
            reason="the failure to be written",
            since=answered.n,
        )
    script.cancel()
    state = lab.state_of(key)
    if state is not None and not has_ended(state):
        await lab.drained([key], within_seconds=FAILURE_SECONDS)


def _stops(book: StatementBook, learned: frozenset[str]) -> dict[Point, str]:
    """Which points a worker of this subject can be stopped at, and why not at the others."""
    knows = {change for change, statements in book.learned().items() if statements}
    grants = "yes" if "claim" in learned else "no claim that changes a row was seen"
    claims = "yes" if "claim" in knows else "no statement was seen to claim"
    results = "yes" if RESULTS & knows else "no statement was seen to write a result"
    renews = "yes" if "renew" in knows else "no statement was seen to renew a lease"
    return {
        Point.CLAIM_SENT: claims,
        Point.SNAPSHOT: claims if grants == "yes" else grants,
        Point.CLAIMED: grants,
        Point.COMMITTING: grants,
        Point.COMMIT_LOST: claims if grants == "yes" else grants,
        Point.CALLING: "yes",
        Point.CALLED: "yes",
        Point.RESULT_SENT: results,
        Point.RESULT_LOST: results,
        Point.RENEWING: renews,
    }
