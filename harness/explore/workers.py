"""The stage of real workers: processes of a subject that live through all schedules and are let go one step at a time.

A step is a request to the database that may touch a table, or a request to the sink, with all that the worker does until its
next one. What a worker says while there is no job is a *poll*: all of it up to one that changes a row, or up to and
including the one that usually brings a job, is one step; a poll that brings nothing counts against a bound. Renewals are
held back and left out.
"""

import asyncio
import itertools
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self, cast

from harness.contracts.point import Point
from harness.contracts.problem import EnvironmentFailed, SubjectFailed
from harness.contracts.subject import State
from harness.explore.case import Case, Made, Played, Values, count, leases_can_end, quickened
from harness.explore.footprint import EVERYTHING, Footprint, footprint
from harness.explore.gate import Standing, SteppedSink, WireGate, begins_transaction, ends_transaction
from harness.explore.plans import Plans
from harness.explore.reset import Reset
from harness.explore.schedule import Kind, Move
from harness.explore.stage import Diverged, Ending
from harness.explore.troupe import STEP_SECONDS, Actor, Troupe, in_transaction, renews
from harness.history.events import (
    Began,
    Ended,
    FaultLanded,
    Moved,
    Reached,
    SessionOpened,
    WorkerStarted,
)
from harness.history.recorder import PlayRecorder, Recorder
from harness.history.story import Story
from harness.history.subject_facts import facts_of
from harness.lab.closing import compare
from harness.lab.ground import Ground
from harness.lab.lab import Lab
from harness.lab.worker import LabWorker
from harness.postgres.truth import TruthReader
from harness.processes.placeholders import fill
from harness.run.judge import judge
from harness.sink.ledger import Kind as SinkKind

START_SECONDS = 20.0
LOOKS = 11
MOST_STEPS = 80
UNJUDGED = ("no_lost_job",)  # a schedule ends when its polls are used up, not when its jobs have had their time
SPARING_SECONDS = 0.01


class WorkerStage(Troupe):
    """See the module. Use as a context manager; ``ground`` is a database of its own with the subject in it."""

    def __init__(self, ground: Ground, recorder: Recorder, case: Case, *, seed: int = 0) -> None:
        subject = quickened(ground.subject, case)
        super().__init__(case, subject)
        self.jobs = case.jobs
        self.leases_end = leases_can_end(subject)
        self._recorder = recorder
        self._between = Recorder(Path(os.devnull))
        self._seed = seed
        self._plays = itertools.count(1)
        self._left = Case()
        self._made: list[Made] = []
        self._running: dict[
            str, bool
        ] = {}  # job key -> its committed row is running with its lease as the queue set it
        self._expired: set[str] = set()
        self._over: set[str] = set()
        # A copy of the book: what is learned here of rescues would, in the plays beside this one, stop a worker in the wrong statement.
        own = replace(ground, subject=subject, fill=partial(fill, subject), book=ground.book.copy())
        self.lab = Lab(own, self._between.play("start"), learning=True)
        self._sink = SteppedSink(
            cast("SinkKind", subject.sink), self.lab.recorder, self._arrived, lambda: next(self._order)
        )
        self.lab.sink = self._sink
        self._reset: Reset
        self._plans: Plans

    # ---------------------------------------------------------------- life

    async def __aenter__(self) -> Self:
        await self.lab.__aenter__()
        try:
            await self.lab.watch.stop()
            self._looking = await self.lab.connect("explorer")
            self._reset = Reset(await self.lab.connect("reset"))
            await self._reset.prepare()
            self._plans = Plans(await self.lab.connect("plans"), self.subject.jobs, self.lab.ground.table)
            await self._plans.prepare()
            self._play(self._between.play("start"))
            for _ in range(self.case.workers):
                await self._start(self.lab.worker())
            await self._learn()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._close()

    async def _close(self) -> None:
        """End the workers and leave the tables, and truth, as they were."""
        self._play(self._between.play("end"))
        for waiting in tuple(self._sink.waiting):
            self._sink.pass_on(waiting)
        for actor in self._actors:
            await actor.worker.close()
        with_reset = getattr(self, "_reset", None)
        if with_reset is not None and not self.lab.closing:
            await self._ended_backends()
            await self._reset.run()
        self.lab.keys.clear()
        await self.lab.close()
        self._between.close()

    async def _ended_backends(self) -> None:
        for backend in await self.lab.view.backends():
            await self.lab.end_backend(backend.pid)

    def _play(self, recorder: PlayRecorder) -> None:
        """Everything is recorded into this play from now on."""
        self.lab.recorder = recorder
        self._sink.begin(recorder)
        for actor in self._actors:
            actor.proxy.recorder = recorder
        recorder.subscribe(self._heard)

    async def _start(self, worker: LabWorker) -> None:
        proxy = worker._proxy = await self.lab.open_proxy(worker.number)
        self._actors.append(Actor(worker, proxy, WireGate(proxy, self._arrived, lambda: next(self._order))))
        await worker.start()

    @property
    def tables(self) -> tuple[str, ...]:
        """The subject's tables."""
        return self._reset.tables

    @property
    def left_out(self) -> tuple[str, ...]:
        """What was not explored, in sentences."""
        said = ["renewals were held back"]
        said.append(f"looks of a worker that was granted {count(self.case.most_grants, 'job')} already")
        if self.case.polls == 0:
            said.append("looks for jobs while there is none to get")
        else:
            said.append(f"more than {count(self.case.polls, 'look')} for jobs per worker that bring nothing")
        if self._main and len(self._polls) > 1:
            said.append("orders within one look for jobs, and looks of a worker that has a job in hand")
        return tuple(said)

    def ids(self) -> dict[str, str]:
        """Each job's id in the latest schedule, by key."""
        moved = (entry.what for entry in self.lab.recorder.entries)
        found = {each.key: each.job for each in moved if isinstance(each, Moved) and each.key is not None}
        return {key: found[key] for key in self.lab.keys if key in found}

    # ---------------------------------------------------------------- learning

    async def _learn(self) -> None:
        """See what workers say while there is no job, and which of it brings one."""
        first = self._actors[0]
        seen: Counter[str] = Counter()
        deadline = time.monotonic() + START_SECONDS
        await self._settle(within_seconds=START_SECONDS)
        while max(seen.values(), default=0) < LOOKS or in_transaction(first):
            standing = self._standing(first)
            if standing is None or standing.view is None:
                raise SubjectFailed(
                    f"worker 1 of {self.subject.name} has ended before it looked for jobs; its last output:\n{first.worker.tail()}"
                )
            seen[standing.fingerprint] += 1
            await self._go(first, standing)
            if time.monotonic() > deadline and max(seen.values()) > 1:
                break
        self._polls = set(seen)
        await self._enqueue(["learn-1"])
        head = ""
        for _ in range(MOST_STEPS):
            standing = self._standing(first)
            if standing is None:
                break
            if standing.call is not None and self.case.expiries:
                await self._hear_heartbeat(first)
            before = first.moved
            poll = self._is_poll(first, standing)
            if not poll and not self._main:
                self._main = head
            if poll and self._main and not first.in_hand:
                break
            if poll and not ends_transaction(standing.fingerprint) and not in_transaction(first):
                head = standing.fingerprint
            await self._go(first, standing)
            if first.moved > before and not self._main:
                self._main = head
        if not self._main:
            raise SubjectFailed(
                f"worker 1 of {self.subject.name} did not take the one job there was within {MOST_STEPS} requests"
            )
        await self._reset.run()

    async def _hear_heartbeat(self, actor: Actor) -> None:
        """Keep a job in hand until its lease is renewed once, so that renewals are recognised from then on."""
        beat = self.subject.heartbeat_seconds
        if beat is None:
            return
        deadline = time.monotonic() + 2 * beat + 0.2
        before = actor.moved
        while actor.moved == before and time.monotonic() < deadline:
            for session, each in tuple(actor.gate.standing.items()):
                if not self._is_poll(actor, each):
                    actor.gate.pass_on(session)
            await asyncio.sleep(0.005)

    # ---------------------------------------------------------------- the stage

    async def begin(self) -> None:
        """Everybody before the request that usually brings a job, the tables empty, then the jobs."""
        self._play(self._between.play("between"))
        for actor in self._actors:
            await self._home(actor)
        await self._reset.run()
        for actor in self._actors:
            await self._to_main(actor)
            actor.polls = actor.moved = actor.grants = 0
            actor.holding.clear()
        self._left = self.case
        self._made = []
        self._running, self._expired, self._over = {}, set(), set()
        play = self._recorder.play(f"schedule:{next(self._plays)}")
        self._play(play)
        play.record(Began("explore", facts_of(self.subject), excuses=UNJUDGED, seed=self._seed))
        for actor in self._actors:
            play.record(WorkerStarted(actor.number, actor.worker.pid, actor.worker.incarnation))
            for session in actor.worker.sessions:
                if session.open:
                    play.record(SessionOpened(session.id, actor.number, session.pid, session.app))
        await self._enqueue([f"job-{number}" for number in range(1, self.jobs + 1)])

    async def _enqueue(self, keys: list[str]) -> None:
        lab = self.lab
        lab.keys.clear()
        lab.known = type(lab.known)()
        for actor in self._actors:
            actor.proxy.known = lab.known
        lab.watch.truth = TruthReader(lab.watch.truth.connection)
        await lab.enqueue(keys)
        await lab.watch.read_truth()

    async def _home(self, actor: Actor) -> None:
        """Let a worker finish what an abandoned schedule left it with, or start it anew."""
        for _ in range(MOST_STEPS):
            if actor.dead or not actor.worker.running:
                break
            standing = self._standing(actor)
            if standing is None or actor.blocked:
                if await self._help_others(actor):
                    continue
                break
            if self._is_poll(actor, standing) and not actor.in_hand and not in_transaction(actor):
                self._let_renewals_go(actor)
                return
            await self._go(actor, standing)
        await self._restart(actor)

    async def _help_others(self, actor: Actor) -> bool:
        """Let those go on who may block this one; False when nobody can."""
        for other in self._actors:
            standing = self._standing(other)
            if other is not actor and standing is not None and other.in_hand:
                await self._go(other, standing)
                return True
        return False

    def _let_renewals_go(self, actor: Actor) -> None:
        for session in [session for session, each in actor.gate.standing.items() if renews(each)]:
            actor.gate.pass_on(session)

    async def _restart(self, actor: Actor) -> None:
        """A new process in place of one that is dead or does not come home."""
        if actor.worker.running:
            await actor.worker.kill()
        actor.in_hand.clear()
        actor.gate.drop_gone()
        actor.dead = actor.blocked = False
        await actor.worker.start()
        await self._settle(within_seconds=START_SECONDS)
        if actor.dead:
            raise SubjectFailed(
                f"worker {actor.number} of {self.subject.name} ends by itself; its last output:\n{actor.worker.tail()}"
            )

    async def _to_main(self, actor: Actor) -> None:
        """With the tables empty, on to the request that usually brings a job. What it says on the way is a poll."""
        for _ in range(MOST_STEPS):
            standing = self._standing(actor)
            if standing is None or standing.view is None:
                raise Diverged(f"worker {actor.number} has something to do although there is no job")
            if standing.fingerprint == self._main:
                return
            self._polls.add(standing.fingerprint)
            await self._go(actor, standing)
        raise Diverged(f"worker {actor.number} did not look for jobs in {MOST_STEPS} requests")

    async def enabled(self) -> Sequence[Move]:
        moves = self._moves()
        if not moves and any(actor.blocked and not actor.dead for actor in self._actors):
            await self._settle(unblocked=True)  # all wait for each other: the server ends that
            moves = self._moves()
        return moves

    def _moves(self) -> list[Move]:
        able = []
        for actor in self._actors:
            standing = self._standing(actor)
            if actor.dead or standing is None:
                continue
            if self._is_poll(actor, standing) and not actor.in_hand and not self._may_poll(actor):
                continue
            able.append((actor, standing))
        moves = [Move(Kind.STEP, actor.number) for actor, _ in able]
        left = self._left
        calm = not any(actor.in_hand for actor in self._actors)
        if left.expiries and calm:
            moves += [
                Move(Kind.EXPIRE, place)
                for place, key in enumerate(self.lab.keys, 1)
                if self._running.get(key) and key not in self._expired
            ]
        if left.severs:
            moves += [Move(Kind.SEVER, actor.number) for actor, standing in able if _severable(standing)]
        if left.kills:
            moves += [Move(Kind.KILL, actor.number) for actor, standing in able if not self._is_poll(actor, standing)]
        return moves

    def _may_poll(self, actor: Actor) -> bool:
        """Whether a look for jobs may bring one, or is within the bound."""
        if actor.grants >= self.case.most_grants:
            return False
        if actor.polls < self.case.polls:
            return True
        return actor.polls == self.case.polls and self._watches_rows and (self._overdue() or self._due())

    def _due(self) -> bool:
        """Whether a job waits to be claimed."""
        return any(not self._running.get(key) and key not in self._over for key in self.lab.keys)

    @property
    def _watches_rows(self) -> bool:
        return self.case.expiries > 0 or self.case.polls == 0

    async def perform(self, move: Move) -> Footprint:
        if move not in self._moves():
            raise Diverged(f"{move} is not possible after {len(self._made)} moves")
        if move.kind is Kind.EXPIRE:
            return await self._expire(move)
        actor = self._actors[move.number - 1]
        if move.kind is Kind.KILL:
            return await self._kill(actor, move)
        standing = self._standing(actor)
        assert standing is not None
        blocked = [other for other in self._actors if other.blocked]
        if move.kind is Kind.STEP and self._is_poll(actor, standing) and not actor.in_hand:
            touched = await self._poll(actor, move)
        else:
            touched = await self._step(actor, standing, move)
        if self._watches_rows:
            await self._look_at_rows()
        woken = any(not other.blocked for other in blocked)
        return EVERYTHING if woken or actor.blocked or actor.dead else touched

    async def _step(self, actor: Actor, standing: Standing, move: Move) -> Footprint:
        first = len(self.lab.recorder.entries)
        before = actor.moved
        values = standing.values()
        if standing.view is not None:
            await self._plans.look(standing.view)
        if move.kind is Kind.SEVER:
            self._left = replace(self._left, severs=self._left.severs - 1)
            await self._sever(actor, standing)
        else:
            await self._go(actor, standing)
        self._note(move, standing, first, values)
        touched = self._touched(standing, moved=actor.moved > before)
        return touched | footprint(writes=["budget:s"]) if move.kind is Kind.SEVER else touched

    def _touched(self, standing: Standing, *, moved: bool) -> Footprint:
        if standing.call is not None:
            key = standing.call.key
            return footprint(writes=[f"sink:{key}", f"story:{key}"])
        assert standing.view is not None
        return self._plans.footprint(standing.view, standing.changes, moved=moved)

    async def _poll(self, actor: Actor, move: Move) -> Footprint:
        """Let a worker look for jobs until something comes of it or it has looked where jobs usually are.

        When a lease has ended, it is given the time in which the subject promises to take over.
        """
        first = len(self.lab.recorder.entries)
        before = actor.moved
        touched = Footprint(frozenset(), frozenset())
        patience = time.monotonic() + self._patience_seconds()
        shown: Standing | None = None
        values: Values = ()
        has_looked = False
        while True:
            standing = self._standing(actor)
            if standing is None or not self._is_poll(actor, standing) or actor.moved > before:
                break
            looked = standing.fingerprint == self._main
            inside = in_transaction(actor)
            if looked and has_looked:
                await asyncio.sleep(
                    SPARING_SECONDS
                )  # only to spare the machine: the worker looks for ended leases by its own clock
            shown = standing if shown is None or not ends_transaction(standing.fingerprint) else shown
            said = standing.values()
            values = said if shown is standing else values
            if standing.view is not None:
                await self._plans.look(standing.view)
            await self._go(actor, standing)
            control = begins_transaction(standing.fingerprint) or ends_transaction(standing.fingerprint)
            # Of a look that brings nothing, what does not usually bring a job is left out where no lease ends: it comes by the
            # worker's own clock, now in one look and now in another.
            counts = looked or inside or self.case.expiries > 0
            if actor.moved > before or (counts and not control):
                touched |= self._touched(standing, moved=actor.moved > before)
            if actor.moved > before:
                shown, values = standing, said
            has_looked = has_looked or looked
            if has_looked and not in_transaction(actor) and not (self._overdue() and time.monotonic() < patience):
                break
        assert shown is not None
        following = self._standing(actor)
        if actor.moved == before and self._is_poll(actor, following) and not actor.in_hand:
            actor.polls += 1
        self._note(move, shown, first, values)
        return touched

    def _overdue(self) -> bool:
        """Whether a job runs whose lease has ended."""
        return any(self._running.get(key) for key in self._expired)

    def _patience_seconds(self) -> float:
        return self.subject.takeover_within_seconds or (self.subject.lease_seconds or 1.0)

    def _note(self, move: Move, standing: Standing, first: int, values: Values) -> None:
        view = standing.view
        what = f"{standing.call.what} for job {standing.call.key!r}" if standing.call is not None else ""
        self._made.append(
            Made(
                move,
                what or (view.fingerprint if view else ""),
                view.sql if view else "",
                self._plans.literals(view.sql, values) if view else (),
                first,
                len(self.lab.recorder.entries),
            )
        )

    # ---------------------------------------------------------------- further moves

    async def _expire(self, move: Move) -> Footprint:
        key = self.lab.keys[move.number - 1]
        first = len(self.lab.recorder.entries)
        table, jobs = self.lab.ground.table, self.subject.jobs
        await self.lab.execute(
            f"update {table.name} set {jobs.lease_until} = clock_timestamp() - interval '1 millisecond'"
            f" where ({jobs.key})::text = %(key)s",
            {"key": key},
        )
        self.lab.recorder.record(
            FaultLanded("lease ended", f"an operator set {jobs.lease_until} into the past", 0, key)
        )
        self._expired.add(key)
        self._left = replace(self._left, expiries=self._left.expiries - 1)
        self._made.append(Made(move, f"the lease of job {key!r} ends", "", (), first, len(self.lab.recorder.entries)))
        await self.lab.watch.read_truth()
        return footprint(writes=[f"row:{key}", f"story:{key}", "budget:e"])

    async def _look_at_rows(self) -> None:
        """What is running, by truth."""
        await self.lab.watch.read_truth()
        states: dict[str, Moved] = {}
        for entry in self.lab.recorder.entries:
            if isinstance(entry.what, Moved) and entry.what.key is not None:
                states[entry.what.key] = entry.what
        for key, moved in states.items():
            running = moved.new is not None and moved.new.state == "running" and not moved.deleted
            self._running[key] = running
            if moved.new is None or State(moved.new.state).ended:
                self._over.add(key)
            else:
                self._over.discard(key)
            if moved.worker:
                self._expired.discard(key)

    async def _kill(self, actor: Actor, move: Move) -> Footprint:
        first = len(self.lab.recorder.entries)
        self._left = replace(self._left, kills=self._left.kills - 1)
        await actor.worker.kill(backend="ends")
        actor.dead, actor.busy = True, False
        actor.in_hand.clear()
        await self._settle()
        self._made.append(Made(move, "is killed, and its backends end", "", (), first, len(self.lab.recorder.entries)))
        return EVERYTHING

    async def _sever(self, actor: Actor, standing: Standing) -> None:
        """Let the step have its effect and lose the reply."""
        recorder = self.lab.recorder
        if standing.call is not None:
            self._sink.drop_reply(worker=actor.number)
            await self._go(actor, standing)
            return
        assert standing.session is not None
        assert standing.view is not None
        proxy = actor.proxy
        hold = proxy.lose_reply(lambda _: True, lambda _: True)
        session = standing.session
        actor.gate.pass_on(session)
        deadline = time.monotonic() + STEP_SECONDS
        while not hold.hit.is_set() and self._standing(actor) is None and time.monotonic() < deadline:
            await asyncio.sleep(0.001)
        if hold.hit.is_set():
            point = Point.COMMIT_LOST if "claim" in standing.changes else Point.RESULT_LOST
            recorder.record(
                Reached(
                    point.value,
                    actor.number,
                    session.pid,
                    standing.view.key,
                    "the server has answered, and the reply is withheld",
                )
            )
            recorder.record(
                FaultLanded("reply lost", f"connection broken at {point.value} with the reply withheld", actor.number)
            )
            hold.sever()
            actor.holding.clear()  # it has never heard of what it was granted
            actor.in_hand.discard(session)
        hold.disarm()
        await self._settle()

    # ---------------------------------------------------------------- the end

    async def end(self) -> Ending:
        """Read truth and the table, and judge."""
        lab = self.lab
        await lab.watch.read_truth()
        if lab.watch.truth.error is not None:
            raise EnvironmentFailed(lab.watch.truth.error)
        await compare(lab, lab._admin)
        lab.recorder.record(Ended())
        entries = tuple(lab.recorder.entries)
        story = Story.of(entries, lab.recorder.name)
        judged = judge(story)
        findings = tuple(dict.fromkeys(finding.invariant for finding in judged.findings))
        undecided = "" if findings or judged.verdict.value in {"pass", "not applicable"} else judged.reason
        return Ending(findings, undecided, Played(story, judged, tuple(self._made), entries))


def _severable(standing: Standing) -> bool:
    if standing.call is not None:
        return standing.call.what == "call"
    return bool(standing.changes)
