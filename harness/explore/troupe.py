"""The workers of a stage and where each of them stands: before a request, behind another's lock, or dead."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg

from harness.contracts.subject import Subject
from harness.explore.case import Case
from harness.explore.gate import Standing, SteppedSink, WireGate, begins_transaction
from harness.explore.reset import query
from harness.history.events import Attempted, Entry, Noticed
from harness.history.recorder import DeadlinePassed
from harness.lab.worker import LabWorker
from harness.wire.proxy import Proxy
from harness.wire.session import Session

STEP_SECONDS = 10.0
HOLDER_SECONDS = 0.4
HOLDER_LOOKS = 5
LOOK_SECONDS = 0.004
_RESULTS = frozenset({"complete", "fail", "release", "retire"})
_FIRST_LOOK_SECONDS = 0.002


@dataclass(eq=False)
class Actor:
    """One worker as the stage sees it."""

    worker: LabWorker
    proxy: Proxy
    gate: WireGate
    polls: int = 0
    grants: int = 0  # in this schedule
    busy: bool = True
    blocked: bool = False
    dead: bool = False  # in this schedule
    moved: int = 0  # row changes that its connections have announced
    in_hand: set[Session] = field(default_factory=set)  # connections in a transaction that is more than a poll
    holding: set[str | None] = field(
        default_factory=set
    )  # keys of jobs that it was granted and has written no result of
    let_go_at: float = 0.0  # when it was last let go, on the monotonic clock
    looks: int = 0  # looks for jobs that were let through since, because it has one in hand

    @property
    def number(self) -> int:
        return self.worker.number


class Troupe:
    """Lets workers go one request at a time, and waits until all stand still again."""

    def __init__(self, case: Case, subject: Subject) -> None:
        self.case = case
        self.subject = subject
        self._actors: list[Actor] = []
        self._polls: set[str] = set()  # what workers say while there is no job
        self._main = ""  # of these, what begins the look that usually brings one
        self._news = asyncio.Event()
        self._order = itertools.count(1)
        self._sink: SteppedSink
        self._looking: psycopg.AsyncConnection

    def _heard(self, entry: Entry) -> None:
        event = entry.what
        if isinstance(event, Attempted) and event.moved == 0 and self._is_result(event):
            self._actors[event.worker - 1].holding.clear()  # refused: it will let go of the job
        if isinstance(event, Noticed):
            for actor in self._actors:
                if actor.number == event.worker:
                    actor.moved += 1
                    actor.in_hand |= {
                        session
                        for session in actor.worker.sessions
                        if session.id == event.session and session.status == "T"
                    }
                    if event.change == "claim":
                        actor.grants += 1
                        actor.holding.add(event.key)
                    elif event.change in _RESULTS:
                        actor.holding.discard(event.key)

    def _is_result(self, attempt: Attempted) -> bool:
        """Whether it was about a job in hand. A look for ended leases, too, is tied to what it does to a row, and finds none."""
        return attempt.statement not in self._polls and not {"claim", "renew"} & set(attempt.changes)

    def _arrived(self) -> None:
        self._news.set()

    def _standing(self, actor: Actor) -> Standing | None:
        """What the worker stands before: of several things the oldest that is no poll. Renewals are held back, uncounted."""
        actor.gate.drop_gone()
        waiting = [Standing(each.order, None, None, each) for each in self._sink.waiting if each.worker == actor.number]
        requests = [each for each in actor.gate.standing.values() if not renews(each)]
        return min((*waiting, *requests), key=lambda each: (self._is_poll(actor, each), each.order), default=None)

    def _pass_on(self, actor: Actor, standing: Standing) -> None:
        actor.busy = True
        actor.let_go_at = time.monotonic()
        actor.looks = 0
        if standing.call is not None:
            self._sink.pass_on(standing.call)
        else:
            assert standing.session is not None
            actor.gate.pass_on(standing.session)

    async def _settle(self, *, within_seconds: float = STEP_SECONDS, unblocked: bool = False) -> None:
        """Wait until each worker stands before something, is blocked by another, or is dead. ``unblocked``: until one moves."""
        deadline = time.monotonic() + within_seconds
        look = _FIRST_LOOK_SECONDS
        while True:
            self._news.clear()
            moving = []
            for actor in self._actors:
                if actor.dead:
                    continue
                if not actor.worker.running:
                    actor.dead, actor.busy = True, False
                    continue
                actor.in_hand -= {each for each in actor.in_hand if not each.open or each.status not in {"T", "E"}}
                standing = self._standing(actor)
                actor.busy = (
                    standing is None or self._begins_work(actor, standing) or self._has_more_to_say(actor, standing)
                )
                if not actor.busy:
                    unblocked = unblocked and not actor.blocked
                    actor.blocked = False
                    continue
                moving.append(actor)
            if not moving or (all(actor.blocked for actor in moving) and not unblocked):
                return
            try:
                async with asyncio.timeout(look):
                    await self._news.wait()
                continue
            except TimeoutError:
                look = min(look * 1.5, 0.05)
            await self._ask_who_is_blocked(moving)
            if time.monotonic() > deadline:
                self._complain(moving, within_seconds)

    def _begins_work(self, actor: Actor, standing: Standing) -> bool:
        """Whether a worker begins a transaction that is no look for jobs: that is no step of its own, and passes."""
        if not self._main or self._is_poll(actor, standing) or not begins_transaction(standing.fingerprint):
            return False
        assert standing.session is not None
        actor.gate.pass_on(standing.session)
        return True

    def _has_more_to_say(self, actor: Actor, standing: Standing) -> bool:
        """Whether a worker that looks for jobs again, with one in hand, is still to say what it does with that one.

        Its looks are let through meanwhile: what it has to say may wait behind them. Where leases end in this case, only
        after a moment, since such a look may then take a job over. That it has nothing to say is told by its own pace, a number
        of looks, and not by time alone: on a busy machine it may be slow to say it.
        """
        if not actor.holding or not self._is_poll(actor, standing):
            return False
        waited_seconds = time.monotonic() - actor.let_go_at
        if waited_seconds > HOLDER_SECONDS and actor.looks >= HOLDER_LOOKS:
            actor.holding.clear()
            return False
        if not self.case.expiries or waited_seconds > LOOK_SECONDS:
            assert standing.session is not None
            actor.looks += 1
            actor.gate.pass_on(standing.session)
        return True

    async def _ask_who_is_blocked(self, moving: Sequence[Actor]) -> None:
        pids = {session.pid: actor for actor in self._actors for session in actor.worker.sessions if session.pid}
        waiting = [pid for pid, actor in pids.items() if actor in moving]
        cursor = await self._looking.execute(query("list_blocked"), {"waiting": waiting, "all": list(pids)})
        blocked = {pids[int(row[0])] for row in await cursor.fetchall()}
        for actor in moving:
            actor.blocked = actor in blocked

    def _complain(self, moving: Sequence[Actor], within_seconds: float) -> None:
        told = "; ".join(
            f"worker {actor.number} did nothing for {within_seconds:g} s; its last output:\n{actor.worker.tail()}"
            for actor in moving
            if not actor.blocked
        )
        raise DeadlinePassed(told or f"the workers stayed blocked for {within_seconds:g} s")

    def _is_poll(self, actor: Actor, standing: Standing | None) -> bool:
        """Whether the worker stands before something that it also says when there is no job, and has none in hand."""
        return (
            standing is not None
            and standing.view is not None
            and standing.fingerprint in self._polls
            and standing.session not in actor.in_hand
        )

    async def _go(self, actor: Actor, standing: Standing) -> None:
        """Let a worker make one request, and wait until everybody stands still."""
        session = standing.session
        if session is not None and session.status == "T" and not self._is_poll(actor, standing):
            actor.in_hand.add(session)
        self._pass_on(actor, standing)
        await self._settle()


def in_transaction(actor: Actor) -> bool:
    return any(session.open and session.status in {"T", "E"} for session in actor.worker.sessions)


def renews(standing: Standing) -> bool:
    return standing.changes == ("renew",)
