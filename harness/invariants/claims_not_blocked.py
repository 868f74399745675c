"""A claim does not wait behind a row that somebody else has locked.

Rule: judged only where the scenario holds a row, for claim statements blocked by that backend. A
lock on the whole table is not skipped by SKIP LOCKED and is reported apart. Source: V3, V6, bug zoo B03, B12.
"""

import re
from collections.abc import Iterator

from harness.contracts.invariant import Unknown, invariant
from harness.contracts.verdict import Finding
from harness.history.facts.locks import on_table
from harness.history.story import Story

NAME = "claims_not_blocked"
# The server shows a statement as it was sent, the wire records it without its literals: bring both down to the same.
_VALUE = re.compile(r"'(?:[^']|'')*'|\$\d+|\b\d+(?:\.\d+)?\b|\?")
_REMARK = re.compile(r"--[^\n]*|/\*.*?(?:\*/|$)", re.DOTALL)
_LIST = re.compile(r"\b(in ?\(|array ?\[) ?\?(?: ?, ?\?)+ ?(?=[\])])")
_OPEN_LIST = re.compile(r"\b(?:in ?\(|array ?\[)[?, ]*$")
CUT_BYTES = 1023  # a server shows no more of a statement than track_activity_query_size, less one; this is its default
_ENOUGH = 40


@invariant(
    serves=("Q7", "V3", "V6"),
    broken_queue="claim_without_skip_locked",
    mend=(
        "End the sub-select that finds the job with `for update skip locked`, in every statement that grants jobs, "
        "takeovers included."
    ),
)
def claims_not_blocked(story: Story) -> Iterator[Finding | Unknown]:
    """No claim waits behind a locked row."""
    told: set[int] = set()
    claims = {_plain(statement) for statement in story.claim_statements}
    unknown: list[int] = []
    for entry in story.blocked:
        blocked = entry.what
        if on_table(blocked) or blocked.worker in told:
            continue
        if not claims:
            unknown.append(entry.n)
            continue
        recognised = _recognise(blocked.statement, claims)
        if recognised is None:
            unknown.append(entry.n)
        if not recognised:
            continue
        told.add(blocked.worker)
        sentence = (
            f"worker {blocked.worker}'s claim must take another row, because backend {blocked.by_pid} holds one of them locked;"
            f" however, at {story.clock(entry.n)} its backend {blocked.pid} waited for it ({blocked.wait})"
        )
        yield Finding(NAME, sentence, (entry.n,), None, (blocked.worker,))
    if unknown:
        yield Unknown(
            "a statement waited behind a locked row, but whether it is one that claims is not known", tuple(unknown[:3])
        )


def _recognise(statement: str, claims: set[str]) -> bool | None:
    """Whether it claims. Of one that the server has cut off, its beginning decides, if that much of it is left."""
    if len(statement.encode()) < CUT_BYTES:
        return _plain(statement) in claims
    # The last word may be half a word, or half a value.
    beginning = _plain(statement.rpartition(" ")[0]).partition("'")[0]
    beginning = _OPEN_LIST.sub("", beginning).strip()
    if len(beginning) < _ENOUGH:
        return None
    return any(claim.startswith(beginning) for claim in claims)


def _plain(statement: str) -> str:
    plain = " ".join(_VALUE.sub("?", _REMARK.sub(" ", statement)).lower().split()).strip(" ;")
    return _LIST.sub(r"\1?", plain)
