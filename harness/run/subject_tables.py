"""The tables of a ``subject.toml`` as typed models: what may stand in them, and in which words a mistake is told."""

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|m|min|h)")
_UNIT_SECONDS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "min": Decimal(60), "h": Decimal(3600)}
_PARAMETER = re.compile(r"%(?:%|\((\w+)\)s|(.?))", re.DOTALL)


def seconds(value: object) -> Decimal:
    """``"500ms"`` as an exact number of seconds. Raises ValueError with the sentence for the user."""
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None and type(value) in (int, float):
        raise ValueError(f'{value!r} has no unit; write "{value}s" or "{value}ms"')
    if match is None:
        raise ValueError(f'{value!r} is not a duration such as "2s", "500ms" or "1m"')
    found = Decimal(match[1]) * _UNIT_SECONDS[match[2]]
    if found == 0:
        raise ValueError(f"{value!r} is no time at all; a duration must be longer than 0")
    return found


def _seconds_or_never(value: object) -> Decimal | Literal["never"]:
    if value == "never":
        return "never"
    if isinstance(value, str) and not value[:1].isdigit():
        raise ValueError(f'{value!r} is neither a duration such as "4s" nor "never"')
    return seconds(value)


@dataclass(frozen=True)
class Takes:
    """A statement whose parameters are among ``allowed`` and include ``needs``. A file's name is looked into later."""

    allowed: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, statement: str) -> str:
        if not is_file_name(statement):
            check_parameters(statement, self.allowed, self.needs)
        return statement


def is_file_name(text: str) -> bool:
    """Whether a statement is given as the name of a file: one word that ends in .sql."""
    return text.endswith(".sql") and not re.search(r"\s", text)


def check_parameters(statement: str, allowed: tuple[str, ...], needs: tuple[str, ...]) -> None:
    """Raises ValueError when a statement is empty, uses a parameter that nobody fills, or lacks one it needs."""
    if not statement.strip():
        raise ValueError("is empty")
    used: set[str] = set()
    for match in _PARAMETER.finditer(statement):
        if match[1]:
            used.add(match[1])
        elif match[2] is not None:
            raise ValueError(f"{match[0]!r} is no parameter; write %% for a percent sign, %(name)s for a parameter")
    strange = sorted(used - set(allowed))
    if strange:
        known = ", ".join(f"%({name})s" for name in allowed)
        raise ValueError(f"%({strange[0]})s is filled by nobody; known here: {known or 'none'}")
    lacking = [name for name in needs if name not in used]
    if lacking:
        raise ValueError(f"does not use %({lacking[0]})s, without which it cannot name the job")


Duration = Annotated[Decimal, BeforeValidator(seconds)]
DurationOrNever = Annotated[Decimal | Literal["never"], BeforeValidator(_seconds_or_never)]
Text = Annotated[str, Field(min_length=1)]
Words = Annotated[list[Text], Field(min_length=1)]

ENQUEUE_TAKES = ("key", "priority", "group")
STATEMENT_TAKES: dict[str, tuple[str, ...]] = {
    "claim": ("worker", "lease_seconds", "batch"),
    "complete": ("worker", "id", "token", "key"),
    "renew": ("worker", "id", "token", "key", "lease_seconds"),
    "fail": ("worker", "id", "token", "key", "error"),
    "release": ("worker", "id", "token", "key"),
    "retry": ("worker", "id", "token", "key", "error"),
    "expire": ("worker", "lease_seconds"),
}


class Table(BaseModel):
    """Strict: no coercion, nothing unknown."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class InstallTable(Table):
    sql: str | list[Text] | None = None
    command: Words | None = None
    after_start: bool = False


class EnqueueTable(Table):
    sql: Annotated[str, Takes(ENQUEUE_TAKES, needs=("key",))] | None = None
    command: Words | None = None


class ConsistentTable(Table):
    sql: Annotated[str, Takes()]


class WorkerTable(Table):
    command: Words | None = None
    env: dict[str, str] = {}
    restarts: Literal["never", "always"] = "never"


class JobsTable(Table):
    table: Text
    id: Text
    key: Text
    state: Text
    owner: Text | None = None
    token: Text | None = None
    token_order: Literal["none", "increasing"] = "none"
    lease_until: Text | None = None
    attempts: Text | None = None
    run_at: Text | None = None
    priority: Text | None = None
    group: Text | None = None
    deleted: Literal["pending", "retry", "running", "done", "dead", "paused", "reconcile", "deleted"] = "deleted"
    reading_from: Annotated[Text | None, Field(alias="from")] = None


class SqlTable(Table):
    claim: Annotated[str, Takes(STATEMENT_TAKES["claim"])]
    complete: Annotated[str, Takes(STATEMENT_TAKES["complete"], needs=("id",))]
    renew: Annotated[str, Takes(STATEMENT_TAKES["renew"], needs=("id",))] | None = None
    fail: Annotated[str, Takes(STATEMENT_TAKES["fail"], needs=("id",))] | None = None
    release: Annotated[str, Takes(STATEMENT_TAKES["release"], needs=("id",))] | None = None
    retry: Annotated[str, Takes(STATEMENT_TAKES["retry"], needs=("id",))] | None = None
    expire: Annotated[str, Takes(STATEMENT_TAKES["expire"])] | None = None


class StatementsTable(Table):
    """Corrections to what the probe learns: per kind of change, the statements that make it."""

    enqueue: str | list[Text] = []
    claim: str | list[Text] = []
    renew: str | list[Text] = []
    release: str | list[Text] = []
    fail: str | list[Text] = []
    complete: str | list[Text] = []
    retire: str | list[Text] = []


class BrokenTable(Table):
    """Of a queue that is broken on purpose, so that the gate can be seen to catch it."""

    letter: Annotated[str, Field(alias="class", pattern="^[A-R]$")]
    caught_by: Text
    by: Words


class SubjectTable(Table):
    name: Text
    extends: Text | None = None
    guarantee: Literal["at-least-once", "effectively-once"]
    order: Literal["none", "run_at", "priority", "per-key"] = "none"
    lease: Duration | None = None
    heartbeat: Duration | None = None
    poll: Duration | None = None
    takeover_within: DurationOrNever
    max_attempts: Annotated[int, Field(ge=1)] | None = None
    sink: Literal["naive", "keyed", "fenced"] | None = None
    recovery: Literal["ask", "replay", "repeat"] | None = None
    clock: Literal["database", "worker"] = "database"
    install: InstallTable = InstallTable()
    enqueue: EnqueueTable
    consistent: ConsistentTable | None = None
    worker: WorkerTable = WorkerTable()
    jobs: JobsTable
    sql: SqlTable | None = None
    statements: StatementsTable = StatementsTable()
    known: dict[str, Text] = {}
    broken: BrokenTable | None = None


class SubjectFile(Table):
    subject: SubjectTable


def keys_of(model: type[BaseModel] | None) -> list[str]:
    """The keys of a table, as they are written in the file."""
    return [] if model is None else [info.alias or name for name, info in model.model_fields.items()]


def model_at(path: tuple[str, ...]) -> type[BaseModel] | None:
    """The model of the table at a path of the file; None where no table of ours stands."""
    model: type[BaseModel] | None = SubjectFile
    for name in path:
        info = model.model_fields.get(name) if model is not None else None
        if info is None:
            return None
        kinds = (info.annotation, *get_args(info.annotation))
        model = next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)
    return model
