"""A grant: the right to process one job until its lease ends, as the database's own words returned it."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any


class Phase(enum.StrEnum):
    """How far the latest attempt came. Recovery acts on this, never on the number of attempts alone."""

    NOT_CALLED = "not_called"
    CALL_UNKNOWN = "call_unknown"
    RESULT_OBTAINED = "result_obtained"
    CONFIRMING = "confirming"


class WrongColumns(Exception):
    """A statement that grants returned rows which tell too little: an overlay's must return what the package's own does."""


@dataclass(frozen=True)
class Grant:
    """``version`` is the fencing token. ``may_call`` is false when the attempts are used up: then only asking is left."""

    id: int
    operation_key: str
    kind: str
    version: int
    attempts: int
    max_attempts: int
    phase: Phase
    remote_id: str | None
    group_key: str | None
    tenant: str | None
    may_call: bool
    deadline: float  # of the lease as far as we know, on our monotonic clock; the database's clock decides

    @classmethod
    def from_row(cls, row: Mapping[str, Any], deadline: float) -> "Grant":
        missing = _COLUMNS.difference(row)
        if missing:
            raise WrongColumns(
                f"a statement that grants jobs returned no column {', '.join(sorted(missing))}:"
                " let it return what the package's claim.sql does"
            )
        return cls(
            id=row["id"],
            operation_key=row["operation_key"],
            kind=row["kind"],
            version=row["version"],
            attempts=row["attempts"],
            max_attempts=row["max_attempts"],
            phase=Phase(row["phase"]),
            remote_id=row["remote_id"],
            group_key=row["group_key"],
            tenant=row["tenant"],
            may_call=row["may_call"],
            deadline=deadline,
        )


_COLUMNS = frozenset(field.name for field in fields(Grant)) - {"deadline"}
