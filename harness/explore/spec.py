"""Writes a schedule as a spec for PostgreSQL's own isolationtester, where all that it did is plain SQL."""

import re
from collections.abc import Sequence

from harness.contracts.subject import Subject
from harness.explore.case import Made
from harness.explore.schedule import Kind

_PARAMETER = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|\$(\d+)", re.DOTALL)

_ID = re.compile(r"[^\s',{}]+")
_LIST_OF_IDS = re.compile(r"'?\{?[^\s',{}]+(?:,[^\s',{}]+)*\}?'?")


class NotPlainSql(Exception):
    """Why there is no spec."""


def write(subject: Subject, made: Sequence[Made], jobs: dict[str, str], tables: Sequence[str]) -> str:
    """The spec's text. ``jobs`` has each key's id in the run; in a new table they are counted from 1. Raises NotPlainSql."""
    if subject.install_command or subject.enqueue_sql is None or not subject.install_sql:
        raise NotPlainSql("the subject is not installed, or not enqueued, by SQL alone")
    ids = {job: str(number) for number, job in enumerate(jobs.values(), 1)}
    sessions: dict[str, list[str]] = {}
    order: list[str] = []
    for number, each in enumerate(made, 1):
        session = "operator" if each.move.kind is Kind.EXPIRE else f"w{each.move.number}"
        if each.move.kind in {Kind.KILL, Kind.SEVER}:
            raise NotPlainSql("a killed worker or a lost reply is no SQL")
        name = f"{session}_{number}"
        order.append(name)
        sessions.setdefault(session, []).append(f"step {name} {{ {_statement(subject, each, ids, jobs)} }}")
    setup = [file.read_text(encoding="utf-8").strip() for file in subject.install_sql]
    setup += [_literal(subject.enqueue_sql, key) for key in jobs]
    lines = [f"# {subject.name}: {''.join(str(each.move) for each in made)}, written by queueproof explore"]
    lines += [_block("setup", text) for text in setup]
    lines.append(_block("teardown", f"drop table if exists {', '.join(tables)} cascade"))
    for session, steps in sessions.items():
        lines += ["", f'session "{session}"', *steps]
    lines += ["", f"permutation {' '.join(order)}", ""]
    return "\n".join(lines)


def _block(word: str, text: str) -> str:
    if "}" in text:
        raise NotPlainSql(f"isolationtester cannot read a closing brace, and the {word} has one")
    return f"{word} {{ {text.rstrip(';')}; }}"


def _statement(subject: Subject, made: Made, ids: dict[str, str], jobs: dict[str, str]) -> str:
    if made.move.kind is Kind.EXPIRE:
        key = list(jobs)[made.move.number - 1]
        lease = subject.jobs.lease_until
        return (
            f"update {subject.jobs.table} set {lease} = clock_timestamp() - interval '1 millisecond'"
            f" where ({subject.jobs.key})::text = {_quoted(key)};"
        )
    if not made.statement:
        return f"select {_quoted('outside: ' + made.what)};"
    values = made.parameters
    if values is None:
        raise NotPlainSql("a parameter travelled in a binary form")

    def fill(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        value = values[int(match[1]) - 1]
        return (
            _ID.sub(lambda each: ids.get(each[0], each[0]), value) if _LIST_OF_IDS.fullmatch(value.strip()) else value
        )

    text = _PARAMETER.sub(fill, made.statement).strip()
    if "}" in text and not re.search(r"'\{[^']*\}'", text):
        raise NotPlainSql("isolationtester cannot read a closing brace, and a statement has one")
    return f"{_without_braces(text).rstrip(';')};"


def _without_braces(text: str) -> str:
    """Array literals spelled without braces, which isolationtester cannot read."""

    def spell(match: re.Match[str]) -> str:
        inside = match[1]
        if any(sign in inside for sign in '"\\{'):
            raise NotPlainSql("isolationtester cannot read a closing brace, and an array has one")
        return f"string_to_array({_quoted(inside)}, ',')"

    return re.sub(r"'\{([^'}]*)\}'", spell, text)


def _literal(enqueue: str, key: str) -> str:
    filled = enqueue.replace("%%", "%")
    for name in ("key", "priority", "group", "run_at", "tenant"):
        filled = filled.replace(f"%({name})s", _quoted(key) if name == "key" else "null")
    return filled.strip()


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
