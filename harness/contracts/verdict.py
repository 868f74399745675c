"""The four verdicts, how they combine, and the finding that explains a fail."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field


class Verdict(enum.StrEnum):
    """Three judgements and one abstention. ``fail > inconclusive > pass``; ``not applicable`` combines with nothing.

    Inconclusive exists because a race that did not happen proves nothing: a gate that calls it green would be
    believed, and that is worse than no gate.
    """

    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"
    PASS = "pass"
    NOT_APPLICABLE = "not applicable"

    @staticmethod
    def worst(verdicts: Iterable["Verdict"]) -> "Verdict":
        """Combine: a fail stands even where the fault did not land; nothing applicable is NOT_APPLICABLE."""
        present = set(verdicts)
        for verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS):
            if verdict in present:
                return verdict
        return Verdict.NOT_APPLICABLE


@dataclass(frozen=True)
class Finding:
    """What broke, by which judgement, and the few history entries that prove it.

    ``sentence`` reads "... because ..., however ...". ``witness`` are the numbers ``n`` of history entries.
    ``key`` is the job's key when one job is concerned, ``workers`` the numbers of the workers involved.
    """

    invariant: str
    sentence: str
    witness: tuple[int, ...]
    key: str | None = None
    workers: tuple[int, ...] = field(default=())
