"""What a grant's holder does first, as a table: by the recorded phase, what the outside says, and what the handler can do.

The same table serves a takeover, a retry after a failed call, and a job's first attempt: each begins with the phase that
the attempt before it left behind. There is no row that sets a job back to pending and forgets.
"""

import enum
from dataclasses import dataclass

from reference_queue.grants import Phase


class Answer(enum.StrEnum):
    """What the outside says about an operation key."""

    APPLIED = "applied"
    ABSENT = "absent"
    UNDECIDED = "undecided"  # it is still at work on it
    UNREACHABLE = "unreachable"


class Step(enum.StrEnum):
    """What to do next with a granted job."""

    CALL = "call"
    ASK = "ask"
    COMPLETE = "complete"
    WAIT = "wait"  # back to retry with a later run_at: the outside cannot tell yet
    DEAD = "dead"
    RECONCILE = "reconcile"


class Recovery(enum.StrEnum):
    """What a handler can do about a call whose result is unknown."""

    ASK = "ask"  # the outside can be asked about a key
    REPLAY = "replay"  # it cannot, but calling again with the same key does no harm
    PERSON = "person"  # neither: not reversible, a person decides


@dataclass(frozen=True)
class First:
    """First step of a grant, before anything was asked."""

    phase: Phase
    recovery: Recovery
    may_call: bool
    step: Step


FIRST = tuple(
    First(phase, recovery, may_call, step)
    for phase, recovery, may_call, step in (
        (Phase.NOT_CALLED, Recovery.ASK, True, Step.CALL),
        (Phase.NOT_CALLED, Recovery.REPLAY, True, Step.CALL),
        (Phase.NOT_CALLED, Recovery.PERSON, True, Step.CALL),
        (Phase.NOT_CALLED, Recovery.ASK, False, Step.DEAD),
        (Phase.NOT_CALLED, Recovery.REPLAY, False, Step.DEAD),
        (Phase.NOT_CALLED, Recovery.PERSON, False, Step.DEAD),
        (Phase.CALL_UNKNOWN, Recovery.ASK, True, Step.ASK),
        (Phase.CALL_UNKNOWN, Recovery.ASK, False, Step.ASK),
        (Phase.CALL_UNKNOWN, Recovery.REPLAY, True, Step.CALL),
        (Phase.CALL_UNKNOWN, Recovery.REPLAY, False, Step.RECONCILE),
        (Phase.CALL_UNKNOWN, Recovery.PERSON, True, Step.RECONCILE),
        (Phase.CALL_UNKNOWN, Recovery.PERSON, False, Step.RECONCILE),
        *(
            (phase, recovery, may_call, Step.COMPLETE)
            for phase in (Phase.RESULT_OBTAINED, Phase.CONFIRMING)
            for recovery in Recovery
            for may_call in (True, False)
        ),
    )
)

AFTER_ASKING = {
    (Answer.APPLIED, True): Step.COMPLETE,
    (Answer.APPLIED, False): Step.COMPLETE,
    (Answer.ABSENT, True): Step.CALL,
    (Answer.ABSENT, False): Step.DEAD,
    (Answer.UNDECIDED, True): Step.WAIT,
    (Answer.UNDECIDED, False): Step.RECONCILE,
    (Answer.UNREACHABLE, True): Step.WAIT,
    (Answer.UNREACHABLE, False): Step.RECONCILE,
}

_FIRST = {(row.phase, row.recovery, row.may_call): row.step for row in FIRST}


def first_step(phase: Phase, recovery: Recovery, *, may_call: bool) -> Step:
    return _FIRST[phase, recovery, may_call]


def step_after_asking(answer: Answer, *, may_call: bool) -> Step:
    return AFTER_ASKING[answer, may_call]
