"""What the sink knows: which effects were applied, under which operation key, fenced by which token.

Decisions are plain function calls without an await in them: that is what makes an effect atomic.
"""

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["naive", "keyed", "fenced"]
Outcome = Literal["effect", "known", "stale"]

KINDS: tuple[Kind, ...] = ("naive", "keyed", "fenced")


@dataclass(frozen=True)
class Effect:
    """One applied effect."""

    call: int
    worker: int
    key: str
    operation_key: str


@dataclass
class Fence:
    """The newest token that one job's calls have shown. Tokens that are no numbers have no order: there, a token is older
    when another one has replaced it.
    """

    newest: str | None = None
    replaced: set[str] = field(default_factory=set)

    def refuses(self, token: str | None) -> bool:
        if self.newest is None or token == self.newest:
            return False
        if token is None or token in self.replaced:
            return True
        older = _number(token), _number(self.newest)
        return older[0] is not None and older[1] is not None and older[0] < older[1]

    def admit(self, token: str | None) -> None:
        if token is None or token == self.newest:
            return
        if self.newest is not None:
            self.replaced.add(self.newest)
        self.newest = token


class Ledger:
    """All effects of one sink, and the one place that decides what a call does."""

    def __init__(self, kind: Kind) -> None:
        self._kind = kind
        self._by_operation: dict[str, Effect] = {}
        self._by_job: dict[str, Effect] = {}
        self._fences: dict[str, Fence] = {}
        self.effects: list[Effect] = []

    @property
    def can_be_asked(self) -> bool:
        return self._kind != "naive"

    def decide(self, call: int, worker: int, key: str, operation_key: str | None, token: str | None) -> Outcome:
        """Apply the call, or recognise it, or refuse it; the answer is already true when this returns."""
        operation = key if operation_key is None else operation_key
        if self._kind == "fenced":
            fence = self._fences.setdefault(key, Fence())
            if fence.refuses(token):
                return "stale"
            fence.admit(token)
        if self.can_be_asked and operation in self._by_operation:
            return "known"
        effect = Effect(call, worker, key, operation)
        self.effects.append(effect)
        self._by_operation.setdefault(operation, effect)
        self._by_job.setdefault(key, effect)
        return "effect"

    def ask(self, key: str, operation_key: str | None) -> Effect | None:
        """The effect of an operation key; without one, ``key`` may be an operation key or a job's key."""
        if operation_key is not None:
            return self._by_operation.get(operation_key)
        return self._by_operation.get(key) or self._by_job.get(key)


def _number(token: str) -> int | None:
    try:
        return int(token)
    except ValueError:
        return None
