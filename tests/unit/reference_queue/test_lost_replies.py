"""What the protocol does when it does not know whether a write happened. A scripted database plays each case."""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from reference_queue import protocol as moves
from reference_queue.failures import Failure
from reference_queue.grants import Grant, Phase
from reference_queue.metrics import Metrics
from reference_queue.protocol import Ours, Protocol
from reference_queue.sessions import Conflict, NothingHappened, Sessions, Unknown
from reference_queue.settings import read
from reference_queue.statements import Statements

SETTINGS = read(["--lease", "1s", "--name", "w"], {})
GRANT = Grant(7, "k", "default", 3, 1, 3, Phase.CALL_UNKNOWN, None, None, None, may_call=True, deadline=0.0)
ROW = {"id": 7, "state": "done"}


class Scripted(Sessions):
    """Answers each statement with the next line of its script; an exception is raised."""

    overlays: Sequence[Path] = ()

    def __init__(self, *script: tuple[str, Any]) -> None:
        self.script = list(script)
        self.statements = Statements(self.overlays)

    async def run(self, text: str, values: Mapping[str, Any]) -> list[Any]:
        name, answer = self.script.pop(0)
        assert text in {self.statements.text(name), self.statements.text(name, 1)}, f"expected {name}, got {text[:80]}"
        if isinstance(answer, Exception):
            raise answer
        return list(answer)


def play(
    monkeypatch: pytest.MonkeyPatch, *script: tuple[str, Any], settings: Any = SETTINGS
) -> tuple[Protocol, Scripted]:
    async def at_once(_seconds: float) -> None:
        return

    monkeypatch.setattr(moves.asyncio, "sleep", at_once)
    sessions = Scripted(*script)
    return Protocol(settings, sessions.statements, sessions, ["default"], Metrics()), sessions


STILL_OURS = [{"state": "running", "phase": "call_unknown"}]
DONE = [{"state": "done", "phase": "result_obtained"}]
DEAD = [{"state": "dead", "phase": "call_unknown"}]


@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        ([("complete", [ROW])], Ours.WON),
        ([("complete", [])], Ours.LOST),
        # the reply got lost, and the write had happened: it is not repeated
        ([("complete", Unknown()), ("read_own", DONE)], Ours.WON),
        # it had not happened: only then it is repeated
        ([("complete", Unknown()), ("read_own", STILL_OURS), ("complete", [ROW])], Ours.WON),
        # another one has the job, or ended it otherwise
        ([("complete", Unknown()), ("read_own", [])], Ours.LOST),
        ([("complete", Unknown()), ("read_own", DEAD)], Ours.LOST),
        # the first write arrives between the look and the repeat
        ([("complete", Unknown()), ("read_own", STILL_OURS), ("complete", []), ("read_own", DONE)], Ours.WON),
        ([("complete", Unknown()), ("read_own", STILL_OURS), ("complete", []), ("read_own", [])], Ours.LOST),
        # even the look may fail; the doubt stays
        (
            [("complete", Unknown()), ("read_own", Unknown()), ("read_own", NothingHappened()), ("read_own", DONE)],
            Ours.WON,
        ),
        # nothing was sent, or the server rolled back: there is no doubt, and the first write is still to be made
        ([("complete", NothingHappened()), ("complete", [ROW])], Ours.WON),
        ([("complete", Conflict("40001")), ("complete", [])], Ours.LOST),
    ],
    ids=str,
)
def test_a_complete(monkeypatch: pytest.MonkeyPatch, script: list[tuple[str, Any]], verdict: Ours) -> None:
    protocol, sessions = play(monkeypatch, *script)
    assert asyncio.run(protocol.complete(GRANT, None, "completed")) is verdict
    assert sessions.script == []


def test_a_failure_is_recognised_by_any_state_that_it_may_lead_to(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol, _ = play(monkeypatch, ("fail", Unknown()), ("read_own", [{"state": "retry", "phase": "call_unknown"}]))
    assert asyncio.run(protocol.fail(GRANT, Failure("retry", "system", "r"))) is Ours.WON


def test_a_mark_is_repeated_since_it_says_the_same_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol, _ = play(
        monkeypatch, ("mark_calling", Unknown()), ("read_own", STILL_OURS), ("mark_calling", [{"id": 7}])
    )
    assert asyncio.run(protocol.mark_calling(GRANT)) is Ours.WON


def test_after_a_while_it_is_told_as_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "LONGEST_INSISTENCE_SECONDS", -1.0)
    short = dataclasses.replace(SETTINGS, deadline_seconds=-1.0)
    protocol, _ = play(monkeypatch, ("complete", Unknown()), settings=short)
    assert asyncio.run(protocol.complete(GRANT, None, "completed")) is Ours.UNKNOWN


def test_a_claim_whose_reply_got_lost_is_not_repeated_and_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol, sessions = play(monkeypatch, ("claim", Unknown()))
    with pytest.raises(Unknown):
        asyncio.run(protocol.claim(1))
    assert sessions.script == []


def test_a_claim_that_was_rolled_back_is_tried_again_a_bounded_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    protocol, sessions = play(monkeypatch, *[("claim", Conflict("40001"))] * moves.CLAIM_TRIES)
    assert asyncio.run(protocol.claim(1)) == []
    assert sessions.script == []


SLOTS = read(["--lease", "1s", "--name", "w", "--slots", "3"], {})
GRANTS = [dataclasses.replace(GRANT, id=number) for number in (7, 8, 9)]


@pytest.mark.parametrize(
    ("script", "verdicts"),
    [
        ([("complete_together", [{"id": 7}, {"id": 8}, {"id": 9}])], [Ours.WON, Ours.WON, Ours.WON]),
        # what is locked or lost goes alone
        (
            [("complete_together", [{"id": 7}]), ("complete", [ROW]), ("complete", [])],
            [Ours.WON, Ours.WON, Ours.LOST],
        ),
        # rolled back as a whole: nothing is in doubt
        (
            [("complete_together", Conflict("40P01")), ("complete", [ROW]), ("complete", [ROW]), ("complete", [])],
            [Ours.WON, Ours.WON, Ours.LOST],
        ),
        # a lost reply: each looks before it repeats anything
        (
            [("complete_together", Unknown()), ("read_own", DONE), ("read_own", DONE), ("read_own", DONE)],
            [Ours.WON, Ours.WON, Ours.WON],
        ),
    ],
    ids=str,
)
def test_results_of_one_moment_go_together_and_each_has_its_own_answer(
    monkeypatch: pytest.MonkeyPatch, script: list[tuple[str, Any]], verdicts: list[Ours]
) -> None:
    protocol, sessions = play(monkeypatch, *script, settings=SLOTS)

    async def end_at_once() -> list[Ours]:
        return list(await asyncio.gather(*(protocol.complete(grant, None, "completed") for grant in GRANTS)))

    assert asyncio.run(end_at_once()) == verdicts
    assert sessions.script == []


def test_who_replaces_the_completion_sees_it_used_for_every_job(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "complete.sql").write_text("select 'mine'")
    monkeypatch.setattr(Scripted, "overlays", [tmp_path])
    protocol, sessions = play(monkeypatch, *[("complete", [ROW])] * 3, settings=SLOTS)

    async def end_at_once() -> None:
        await asyncio.gather(*(protocol.complete(grant, None, "completed") for grant in GRANTS))

    asyncio.run(end_at_once())
    assert sessions.script == []
