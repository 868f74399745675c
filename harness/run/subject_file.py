"""Reads a ``subject.toml`` and those it extends into a ``Subject``; every mistake is named at once, with its path in the file."""

import contextlib
import difflib
import importlib.util
import json
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from harness import processes
from harness.contracts.problem import BadInput
from harness.contracts.subject import LEASE_SECONDS, Broken, JobsMapping, PastedSql, Subject
from harness.processes.placeholders import NAMES, escape, fill, names_in
from harness.run.subject_keys import KEYS
from harness.run.subject_tables import (
    ENQUEUE_TAKES,
    STATEMENT_TAKES,
    JobsTable,
    SqlTable,
    SubjectFile,
    SubjectTable,
    check_parameters,
    is_file_name,
    keys_of,
    model_at,
)

__all__ = ["SubjectMistakes", "fill", "find_file", "load_subject", "reference_queue_folder"]

FILE_NAME = "subject.toml"
REFERENCE_QUEUE = "reference_queue"
Path_ = tuple[str, ...]

# An overlay that gives one of a pair takes the other one's place.
RIVALS: tuple[tuple[Path_, Path_], ...] = (
    (("enqueue", "sql"), ("enqueue", "command")),
    (("install", "sql"), ("install", "command")),
    (("sql",), ("worker", "command")),
)


class SubjectMistakes(BadInput):
    """A subject file is wrong. ``mistakes`` has one line each, ``str`` names the file above them."""

    def __init__(self, file: Path, mistakes: list[str]) -> None:
        super().__init__(*mistakes)
        self.file = file

    def __str__(self) -> str:
        count = len(self.mistakes)
        return "\n  ".join([f"{file_shown(self.file)} has {count} mistake{'s' if count > 1 else ''}:", *self.mistakes])


def load_subject(path: Path) -> Subject:
    """The subject that a folder or a ``subject.toml`` declares. Raises BadInput."""
    file = _file_at(path)
    whole = _read_layers(file)
    mistakes = list(whole.mistakes)
    table: SubjectTable | None = None
    try:
        table = SubjectFile.model_validate(whole.strays | ({"subject": whole.tables} if whole.tables else {})).subject
    except ValidationError as invalid:
        mistakes += [_told(error, whole) for error in invalid.errors()]
    reader = _Reader(whole)
    mistakes += reader.cross_mistakes()
    if table is None or mistakes:
        raise SubjectMistakes(file, sorted(dict.fromkeys(mistakes)))
    return _subject(table, whole)


def reference_queue_folder() -> Path:
    """Where the reference queue lives: a subject like any other, in a package of its own."""
    found = importlib.util.find_spec(REFERENCE_QUEUE)
    places = list(found.submodule_search_locations or ()) if found is not None else []
    if not places:
        raise BadInput("the reference queue is not installed beside queueproof; name a subject, or install it again")
    return Path(places[0])


def find_file(layers: tuple[Path, ...], name: str) -> Path | None:
    """A file by its name in the subject: the topmost layer that has it wins."""
    for layer in reversed(layers):
        # A word of a command may be no name at all: a whole script, too long to be looked for.
        with contextlib.suppress(OSError):
            if (layer / name).is_file():
                return layer / name
    return None


def file_shown(path: Path) -> str:
    """A path as its reader would type it: relative to where they stand when it lies below."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)


# -- reading and merging files


@dataclass
class _Whole:
    """All layers as one, and which file each value came from."""

    file: Path
    layers: tuple[Path, ...] = ()
    tables: dict[str, Any] = field(default_factory=dict)
    strays: dict[str, Any] = field(default_factory=dict)
    origins: dict[Path_, Path] = field(default_factory=dict)
    mistakes: list[str] = field(default_factory=list)

    def origin(self, path: Path_) -> str:
        """`` (in …)`` when a value comes from another file than the one that was named."""
        while path and path not in self.origins:
            path = path[:-1]
        source = self.origins.get(path, self.file)
        return "" if source == self.file else f" (in {file_shown(source)})"

    def get(self, *path: str) -> Any:
        """What stands at a path, or None."""
        here: Any = self.tables
        for name in path:
            here = here.get(name) if isinstance(here, dict) else None
        return here


def _file_at(path: Path) -> Path:
    path = path.expanduser().absolute()
    if path.is_dir():
        if not (path / FILE_NAME).is_file():
            raise BadInput(
                f"{file_shown(path)}: there is no {FILE_NAME} in this folder; `queueproof init` writes a first one"
            )
        path = path / FILE_NAME
    if not path.is_file():
        raise BadInput(f"{file_shown(path)}: there is no such file or folder; name a folder that holds a {FILE_NAME}")
    return path.resolve()


def _parsed(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise BadInput(f"{file_shown(file)}: is not TOML: byte {error.start} is no UTF-8 text") from error
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{file_shown(file)}: is not TOML: {str(error)[:1].lower()}{str(error)[1:]}") from error
    except OSError as error:
        raise BadInput(f"{file_shown(file)}: cannot be read: {error.strerror}") from error


def _read_layers(file: Path) -> _Whole:
    """Follow ``extends`` down, then lay the files over each other from the bottom up."""
    stack: list[tuple[Path, dict[str, Any]]] = []
    mistakes: list[str] = []
    here: Path | None = file
    while here is not None:
        content = _parsed(here)
        stack.append((here, content))
        table = content.get("subject")
        extends = content.pop("extends", None)
        if isinstance(table, dict):
            extends = table.pop("extends", extends)
        here = None
        if extends is not None:
            here = _extended(extends, stack, mistakes)
    whole = _Whole(file, tuple(source.parent for source, _ in reversed(stack)), mistakes=mistakes)
    for source, content in reversed(stack):
        table = content.pop("subject", {})
        if not isinstance(table, dict):
            whole.mistakes.append(f"subject: {table!r} is not a table; write [subject]{_in(source, file)}")
            continue
        for path in _paths(content):
            whole.origins[path] = source
        whole.strays |= content
        _displace_rivals(whole.tables, table)
        _lay_over(whole.tables, table, ("subject",), source, whole.origins)
    return whole


def _extended(extends: Any, stack: list[tuple[Path, dict[str, Any]]], mistakes: list[str]) -> Path | None:
    source = stack[-1][0]
    where = _in(source, stack[0][0])
    if not isinstance(extends, str):
        mistakes.append(f"subject.extends: {extends!r} is not the folder of another subject{where}")
        return None
    try:
        found = _file_at(
            reference_queue_folder() if extends == REFERENCE_QUEUE else source.parent / Path(extends).expanduser()
        )
    except BadInput as bad:
        mistakes.append(f"subject.extends: {extends!r} leads nowhere: {bad}{where}")
        return None
    if found in [seen for seen, _ in stack]:
        mistakes.append(f"subject.extends: {extends!r} leads in a circle back to {file_shown(found)}{where}")
        return None
    return found


def _in(source: Path, file: Path) -> str:
    return "" if source == file else f" (in {file_shown(source)})"


def _paths(table: Mapping[str, Any], prefix: Path_ = ()) -> Iterator[Path_]:
    for name, value in table.items():
        yield (*prefix, name)
        if isinstance(value, dict):
            yield from _paths(value, (*prefix, name))


def _lay_over(
    below: dict[str, Any], above: dict[str, Any], at: Path_, source: Path, origins: dict[Path_, Path]
) -> None:
    for name, value in above.items():
        origins[*at, name] = source
        if isinstance(value, dict):
            if not isinstance(below.get(name), dict):
                below[name] = {}
            _lay_over(below[name], value, (*at, name), source, origins)
        else:
            below[name] = value


def _displace_rivals(below: dict[str, Any], above: dict[str, Any]) -> None:
    for pair in RIVALS:
        for mine, rival in (pair, pair[::-1]):
            if _has(above, mine) and not _has(above, rival):
                _remove(below, rival)


def _has(table: dict[str, Any], path: Path_) -> bool:
    here: Any = table
    for name in path:
        if not isinstance(here, dict) or name not in here:
            return False
        here = here[name]
    return True


def _remove(table: dict[str, Any], path: Path_) -> None:
    if _has(table, path):
        here = table
        for name in path[:-1]:
            here = here[name]
        del here[path[-1]]


# -- telling mistakes


def _told(error: ErrorDetails, whole: _Whole) -> str:
    """One validation error as a line: path, value, what is wrong, and what would be right."""
    path = tuple(str(part) for part in error["loc"])
    shown = ".".join(f"[{part}]" if part.isdigit() else part for part in path).replace(".[", "[")
    return f"{shown}: {_wrong(error, path)}{whole.origin(path)}"


def _wrong(error: ErrorDetails, path: Path_) -> str:
    value = repr(error["input"])
    value = value if len(value) <= 80 else value[:77] + "..."
    match error["type"]:
        case "missing":
            key = KEYS.get(".".join(path))
            return f"missing; {key.meaning}" if key is not None else "missing"
        case "extra_forbidden":
            return _unknown(path)
        case "literal_error":
            return f"{value} is not one of {error['ctx']['expected'].replace(' or ', ', ').replace(chr(39), '')}"
        case "value_error":
            return str(error["ctx"]["error"])
        case "string_type":
            return f"{value} is not a text; write it in quotes"
        case "string_pattern_mismatch":
            return f"{value} is not what fits {error['ctx']['pattern']}"
        case "string_too_short":
            return "is empty"
        case "too_short":
            return "is an empty list"
        case "list_type":
            return f'{value} is not a list of texts, such as ["a", "b"]'
        case "int_type" | "int_from_float":
            return f"{value} is not a whole number"
        case "greater_than_equal":
            return f"{value} is less than {error['ctx']['ge']}"
        case "bool_type":
            return f"{value} is neither true nor false"
        case "dict_type" | "model_type":
            return f"{value} is not a table"
        case _:
            return f"{value}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _unknown(path: Path_) -> str:
    """An unknown key: the nearest known one, or where it belongs, or what is known here."""
    known = keys_of(model_at(path[:-1]))
    near = difflib.get_close_matches(path[-1], known, n=1, cutoff=0.6)
    if near:
        return f"unknown; did you mean {near[0]!r}?"
    elsewhere = [".".join(at) for at in _tables() if path[-1] in keys_of(model_at(at))]
    if elsewhere:
        return f"unknown here; it belongs in [{elsewhere[0]}]"
    return f"unknown; known here: {', '.join(known)}"


def _tables(at: Path_ = ()) -> Iterator[Path_]:
    for name in keys_of(model_at(at)):
        if model_at((*at, name)) is not None:
            yield (*at, name)
            yield from _tables((*at, name))


# -- what one table cannot see


class _Reader:
    """Judges what concerns more than one key, or the file system; tolerant of wrong types, which are told elsewhere."""

    def __init__(self, whole: _Whole) -> None:
        self._whole = whole

    def cross_mistakes(self) -> list[str]:
        if not self._whole.tables:
            return []
        return [
            line + self._whole.origin(tuple(line.split(":")[0].split(".")))
            for check in (self._one_of_each, self._files, self._templates, self._mapping)
            for line in check()
        ]

    def _one_of_each(self) -> Iterator[str]:
        get = self._whole.get
        enqueue = get("enqueue")
        if isinstance(enqueue, dict):
            if "sql" in enqueue and "command" in enqueue:
                yield "subject.enqueue: has both sql and command; keep one"
            elif "sql" not in enqueue and "command" not in enqueue:
                yield "subject.enqueue: has neither sql nor command; give one"
        if get("install", "sql") is not None and get("install", "command") is not None:
            yield "subject.install: has both sql and command; keep one"
        if get("worker", "command") is not None and get("sql") is not None:
            yield (
                "subject.sql: our own worker runs pasted statements, but subject.worker.command names another; keep one"
            )
        elif get("worker", "command") is None and get("sql") is None:
            yield 'subject.worker.command: missing; such as ["{python}", "worker.py"], or paste statements in [subject.sql]'

    def _files(self) -> Iterator[str]:
        get = self._whole.get
        installed = get("install", "sql")
        for name in [installed] if isinstance(installed, str) else installed if isinstance(installed, list) else []:
            if not isinstance(name, str):
                continue
            if not is_file_name(name):
                yield f"subject.install.sql: {name[:60]!r} is not the name of a .sql file"
            elif find_file(self._whole.layers, name) is None:
                yield f"subject.install.sql: there is no file {name!r} in {self._places()}"
        takes = {("enqueue", "sql"): (ENQUEUE_TAKES, ("key",)), ("consistent", "sql"): ((), ())}
        takes |= {
            ("sql", name): (allowed, () if name in ("claim", "expire") else ("id",))
            for name, allowed in STATEMENT_TAKES.items()
        }
        for path, (allowed, needs) in takes.items():
            statement = get(*path)
            if not isinstance(statement, str) or not is_file_name(statement):
                continue
            shown = ".".join(("subject", *path))
            file = find_file(self._whole.layers, statement)
            if file is None:
                yield f"{shown}: there is no file {statement!r} in {self._places()}"
                continue
            try:
                check_parameters(file.read_text(encoding="utf-8"), allowed, needs)
            except (ValueError, OSError) as error:
                yield f"{shown}: {statement}: {error}"

    def _places(self) -> str:
        return " or ".join(file_shown(layer) for layer in reversed(self._whole.layers))

    def _templates(self) -> Iterator[str]:
        get = self._whole.get
        templates: list[tuple[str, Any]] = []
        for table in ("worker", "enqueue", "install"):
            command = get(table, "command")
            templates += [(f"subject.{table}.command", word) for word in (command if isinstance(command, list) else ())]
        env = get("worker", "env")
        templates += [
            (f"subject.worker.env.{name}", value) for name, value in (env if isinstance(env, dict) else {}).items()
        ]
        for path, template in templates:
            for name in names_in(template) if isinstance(template, str) else ():
                if name not in NAMES:
                    near = difflib.get_close_matches(name, NAMES, n=1)
                    hint = f"did you mean {{{near[0]}}}?" if near else f"known: {', '.join(NAMES)}"
                    yield f"{path}: {{{name}}} is unknown; {hint} (write {{{{{name}}}}} for the text itself)"
                elif name in ("lease", "heartbeat", "poll", "max_attempts") and get(name) is None:
                    yield f"{path}: {{{name}}} has no value, since subject.{name} is not given"

    def _mapping(self) -> Iterator[str]:
        get = self._whole.get
        if get("jobs", "token_order") == "increasing" and get("jobs", "token") is None:
            yield "subject.jobs.token_order: promises an order, but subject.jobs.token is not given"
        if LEASE_SECONDS in str(get("jobs", "lease_until")) and get("lease") is None:
            yield "subject.lease: missing; subject.jobs.lease_until uses {lease}, the seconds of one"
        if get("order") == "run_at" and get("jobs", "run_at") is None:
            yield (
                "subject.order: 'run_at' promises an order that nobody can see, since subject.jobs.run_at is not given;"
                ' give it, such as run_at = "run_at", or say order = "none"'
            )
        if get("sql", "renew") is not None and get("heartbeat") is None:
            yield "subject.heartbeat: missing; how often our worker runs subject.sql.renew"
        if get("heartbeat") is not None and get("lease") is None:
            yield "subject.lease: missing; a heartbeat renews a lease, so say how long one is"


# -- from tables to a subject


def _subject(table: SubjectTable, whole: _Whole) -> Subject:
    layers = whole.layers
    effectively_once = table.guarantee == "effectively-once"
    text = _texts(layers)
    command, env = tuple(_located(word, layers) for word in table.worker.command or ()), dict(table.worker.env)
    pasted = None
    if table.sql is not None:
        pasted = _pasted(table.sql, text)
        command, env = _own_worker(table, pasted, env)
    installed = [table.install.sql] if isinstance(table.install.sql, str) else table.install.sql or []
    return Subject(
        name=table.name,
        folder=layers[-1],
        layers=layers,
        guarantee=table.guarantee,
        order=table.order,
        lease_seconds=_number(table.lease),
        heartbeat_seconds=_number(table.heartbeat),
        poll_seconds=_number(table.poll),
        takeover_within_seconds=None if table.takeover_within == "never" else float(table.takeover_within),
        max_attempts=table.max_attempts,
        sink=table.sink or ("keyed" if effectively_once else "naive"),
        recovery=table.recovery or ("replay" if effectively_once else "repeat"),
        clock=table.clock,
        install_sql=tuple(file for name in installed if (file := find_file(layers, name)) is not None),
        install_command=tuple(_located(word, layers) for word in table.install.command or ()),
        install_after_start=table.install.after_start,
        enqueue_sql=text(table.enqueue.sql),
        enqueue_command=tuple(_located(word, layers) for word in table.enqueue.command or ()),
        consistent_sql=text(table.consistent.sql) if table.consistent is not None else None,
        worker_command=command,
        worker_env=env,
        restarts=table.worker.restarts,
        jobs=_mapping(table.jobs, _number(table.lease)),
        pasted=pasted,
        statements={
            change: (said,) if isinstance(said, str) else tuple(said)
            for change, said in table.statements.model_dump().items()
            if said
        },
        known=dict(table.known),
        broken=(
            Broken(table.broken.letter, table.broken.caught_by, tuple(table.broken.by))
            if table.broken is not None
            else None
        ),
    )


def _number(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def _mapping(table: JobsTable, lease_seconds: float | None) -> JobsMapping:
    given = table.model_dump()
    order = given.pop("token_order")
    mapping = JobsMapping(**given, token_increasing=order == "increasing")
    return mapping if lease_seconds is None else mapping.with_lease(lease_seconds)


def _texts(layers: tuple[Path, ...]) -> Callable[[str | None], str | None]:
    """Turns a statement, given inline or as a file's name, into its text."""

    def text(statement: str | None) -> str | None:
        file = find_file(layers, statement) if statement is not None and is_file_name(statement) else None
        return statement if file is None else file.read_text(encoding="utf-8").strip()

    return text


def _pasted(table: SqlTable, text: Callable[[str | None], str | None]) -> PastedSql:
    return PastedSql(
        claim=text(table.claim) or "",
        complete=text(table.complete) or "",
        renew=text(table.renew),
        fail=text(table.fail),
        release=text(table.release),
        retry=text(table.retry),
        expire=text(table.expire),
    )


def _own_worker(table: SubjectTable, pasted: PastedSql, env: dict[str, str]) -> tuple[tuple[str, ...], dict[str, str]]:
    """Our own worker for pasted statements, run as a file by our interpreter: a subject's own may lack what it needs."""
    program = Path(processes.__path__[0]) / "pasted_worker.py"
    statements = {name: said for name, said in vars(pasted).items() if said is not None}
    env = {
        "QUEUEPROOF_STATEMENTS": escape(json.dumps(statements)),
        **{
            f"QUEUEPROOF_{name.upper()}": f"{{{name}}}"
            for name in ("lease", "heartbeat", "poll")
            if getattr(table, name)
        },
        **env,
    }
    return (escape(sys.executable), "-P", escape(str(program))), env


def _located(word: str, layers: tuple[Path, ...]) -> str:
    """A command's word; when it names a file that only a lower layer has, that file, since the command runs in the top one."""
    file = find_file(layers, word)
    return word if file is None or file == layers[-1] / word else escape(str(file))
