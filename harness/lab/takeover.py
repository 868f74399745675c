"""The story that most scenarios share: a worker falls silent past its lease, another takes over, and the first acts late."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.contracts.point import Point
from harness.history.events import Attempted, Called, Entry
from harness.history.facts.rescues import rescues
from harness.history.recorder import DeadlinePassed
from harness.history.story import Story
from harness.lab.stops import RESULTS

if TYPE_CHECKING:
    from harness.lab.lab import Lab
    from harness.lab.worker import LabWorker

ABSTAIN_SECONDS = 1.5
LATE_SECONDS = 5.0
ON_THE_WIRE = frozenset({Point.RESULT_SENT, Point.RENEWING, Point.CLAIM_SENT})
GAVE_UP = "gave up after resuming"


async def superseded(
    lab: "Lab", first: "LabWorker", key: str, *, release: Point, by: str = "pause", same_id: bool = False
) -> "LabWorker":
    """Silence ``first`` past its lease, let a second worker take over, then let ``first`` do what it was about to do.

    ``release`` is the point where ``first`` stands. A message held on the wire is released while the process is still
    silent: the server alone decides about it. Otherwise the process is woken to act by itself. The second worker is held
    before its result meanwhile, so that the job has an owner when the late act comes. Returns the second worker.
    """
    await (first.cut() if by == "cut" else first.pause())
    if release in {Point.CALLED, Point.CALLING}:
        await first.release(release)  # the reply waits in the socket, or behind the cut
    await lab.lease_over(key)
    holds = bool(RESULTS & lab.ground.learned)
    second = lab.worker(stops_at=[Point.RESULT_SENT] if holds else [], same_id_as=first if same_id else None)
    await second.start()
    await lab.taken_over(key, from_worker=first)
    if holds:
        await second.reached(Point.RESULT_SENT, within_seconds=lab.takeover_seconds)
    since = lab.recorder.entries[-1].n
    if release in ON_THE_WIRE:
        await first.release(release)
        await _late_act(lab, first, since, within_seconds=LATE_SECONDS)
        await first.resume()
    else:
        if release is Point.COMMIT_LOST:
            await first.release(release)
        await (first.heal() if by == "cut" else first.resume())
        await _late_act(lab, first, since, within_seconds=ABSTAIN_SECONDS)
    if holds:
        await second.release(Point.RESULT_SENT)
    return second


async def statements_that_take_over(lab: "Lab") -> Mapping[str, int]:
    """Let one job be taken over from a worker that dies in its call; by which statements, and which write in each, that was.

    The probe's calm run shows no takeover, so that nothing is known of it before. Raises DeadlinePassed when no statement
    of the rescuer's was seen to do it.
    """
    (example,) = await lab.enqueue(1)
    dying = lab.worker(stops_at=Point.CALLED)
    await dying.start()
    await dying.reached(Point.CALLED, example)
    await dying.kill()
    await lab.lease_over(example)
    rescuer = lab.worker()
    await rescuer.start()
    await lab.drained([example])
    await rescuer.kill()
    seen = [notice.event for notice in rescues(Story.of(lab.recorder.entries)) if notice.event.statement]
    learned = {event.statement: event.place for event in reversed(seen)}
    if not learned:
        raise DeadlinePassed(
            f"job {example!r} was to be taken over from a dead worker; no statement was seen to do that"
        )
    return learned


async def _late_act(lab: "Lab", first: "LabWorker", since: int, *, within_seconds: float) -> None:
    """Wait for the late write or call, or record that the worker made none although it could."""

    def acts(entry: Entry) -> bool:
        event = entry.what
        if isinstance(event, Called):
            return event.worker == first.number
        return isinstance(event, Attempted) and event.worker == first.number and bool(RESULTS & set(event.changes))

    def renews(entry: Entry) -> bool:
        event = entry.what
        return isinstance(event, Attempted) and event.worker == first.number and "renew" in event.changes

    paused = first.paused
    try:
        await lab.recorder.wait_for(
            lambda entry: acts(entry) or (paused and renews(entry)),
            within_seconds=within_seconds,
            reason=f"worker {first.number} to act late",
            since=since,
        )
    except DeadlinePassed:
        if paused:
            raise  # it was on the wire already: the server must have answered
        state = "is alive" if first.running else "has exited"
        lab.saw(
            GAVE_UP,
            f"worker {first.number} {state} and made no call and wrote no result for {within_seconds:g} s",
            worker=first,
        )
