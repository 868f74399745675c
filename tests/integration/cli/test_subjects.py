"""Queues that cannot be driven, or are not read right: one sentence that says which, never a verdict."""

import json
import time
from pathlib import Path

import pytest

from tests.integration.cli.conftest import CommandLine, MakeSubject

SHELL_STATE = (
    "case status when 'new' then 'pending' when 'busy' then 'running' when 'failed' then 'dead' else status end"
)
CHECK = " check (status in ('new', 'busy', 'done', 'failed'))"
NO_CHECK = ("schema.sql", CHECK, "")
ENUM = (
    ("schema.sql", f"text not null default 'new'{CHECK}", "stage not null default 'new'"),
    ("schema.sql", "create table", "create type stage as enum ('new', 'busy', 'done', 'failed');\ncreate table"),
)


def mapped(field: str, old: str, new: str) -> tuple[str, str, str]:
    padded = f"{field:11} = "
    return ("subject.toml", f'{padded}"{old}"', f'{padded}"{new}"')


MISREAD = {
    "enum beside text": (
        [*ENUM, mapped("state", SHELL_STATE, "case status when 'new' then 'pending' else status end")],
        "stage",
    ),
    "division in one state": (
        [
            mapped(
                "state",
                SHELL_STATE,
                "case when status = 'failed' then (1 / (length(status) - 6))::text else status end",
            )
        ],
        "errors when status is 'failed': division by zero",
    ),
    "division on a real row": ([mapped("attempts", "version", "10 / version")], "division by zero"),
    "a cast that fails later": ([mapped("owner", "worker", "worker::int")], "invalid input syntax"),
    "a state of the check constraint": (
        [mapped("state", SHELL_STATE, SHELL_STATE.replace("else status", "when 'done' then 'finished' else status"))],
        "'finished' when status is 'done'",
    ),
    "a state seen only in a row": (
        [NO_CHECK, mapped("state", SHELL_STATE, SHELL_STATE.replace(" when 'failed' then 'dead'", ""))],
        "'failed'",
    ),
    "no state at all": (
        [
            NO_CHECK,
            mapped("state", SHELL_STATE, "case status when 'new' then 'pending' when 'busy' then 'running' end"),
        ],
        "yields None",
    ),
    "a column that is not there": ([mapped("owner", "worker", "locked_by")], '"locked_by" does not exist'),
    "another table": ([mapped("owner", "worker", "(select tablename from pg_tables limit 1)")], "reads pg_"),
    "a second statement": ([mapped("owner", "worker", "worker; drop table jobs")], "syntax error"),
    "a table that is not there": ([mapped("table", "jobs", "job")], "'job' does not exist"),
    "more than a table": ([mapped("table", "jobs", "jobs where true")], "'jobs where true' does not exist"),
    "a view": (
        [
            ("schema.sql", "create index", "create view seen as select * from jobs;\ncreate index"),
            mapped("table", "jobs", "seen"),
        ],
        '"seen" is a view',
    ),
}


@pytest.mark.parametrize("name", MISREAD)
def test_a_mapping_that_does_not_fit_is_bad_input(
    queueproof: CommandLine, make_subject: MakeSubject, dsn: str, name: str
) -> None:
    edits, named = MISREAD[name]
    said = queueproof("probe", make_subject(edits=edits), "--server", dsn)
    assert said.code == 2, said
    assert "subject.jobs" in said.err
    assert named in said.err
    assert said.out == ""


UNDRIVEN = {
    "its schema is broken": ([], {"schema.sql": b"create tabel x();"}, 3, "install of my-queue failed"),
    "its schema is no text": ([], {"schema.sql": b"\xff\xfe\x00"}, 2, "cannot be read as UTF-8"),
    "its worker prints binary": (
        [],
        {"worker.sh": b"head -c 9000 /dev/urandom; printf '\\033[31m'; exit 3"},
        3,
        "exited by itself",
    ),
    "its worker exits at once": ([], {"worker.sh": b"exit 0"}, 3, "It has printed nothing"),
    "its worker says why it exits": ([], {"worker.sh": b"echo no such setting >&2; exit 7"}, 3, "no such setting"),
    "its worker is not there": (
        [("subject.toml", '["bash", "worker.sh"]', '["/no/such/program"]')],
        {},
        3,
        "'/no/such/program': No such file",
    ),
    "its worker may not be run": (
        [("subject.toml", '["bash", "worker.sh"]', '["./worker.sh"]')],
        {},
        3,
        "Permission denied",
    ),
    "its worker insists on TLS": (
        [],
        {"worker.sh": b'psql "$DATABASE_URL?sslmode=require" -c "select 1"'},
        3,
        "insists on TLS",
    ),
    "it calls for another key": ([("worker.sh", "$QUEUEPROOF_SINK/$key", "$QUEUEPROOF_SINK/%1bx")], {}, 3, "'\\x1bx'"),
    "its enqueue fails": ([], {"enqueue.sh": b"printf '\\033[31mnope' >&2; exit 4"}, 3, "exit code 4"),
    "its enqueue acknowledges nothing": ([], {"enqueue.sh": b"cat >/dev/null"}, 3, "acknowledged 0 of 1"),
    "its enqueue does nothing": ([], {"enqueue.sh": b"exec <&-; echo done"}, 3, "no row of jobs has that key"),
    "its enqueue leaves a child": ([], {"enqueue.sh": b"sleep 300 & cat >/dev/null; exit 5"}, 3, ""),
}


@pytest.mark.parametrize("name", UNDRIVEN)
def test_a_queue_that_cannot_be_driven_is_told_why(
    queueproof: CommandLine, make_subject: MakeSubject, dsn: str, name: str
) -> None:
    edits, files, code, named = UNDRIVEN[name]
    said = queueproof("probe", make_subject(edits=edits, files=files), "--server", dsn, within_seconds=100)
    assert said.code == code, said
    assert named in said.err, said
    assert said.out == ""


def test_a_worker_that_ends_again_and_again_before_it_connects_is_told_at_once_and_once(
    queueproof: CommandLine, make_subject: MakeSubject, dsn: str
) -> None:
    edits = [("subject.toml", "[subject.worker]", '[subject.worker]\nrestarts = "always"')]
    files = {"worker.sh": b"echo run $$ of it: no such module >&2; exit 7"}
    said = queueproof("probe", make_subject(edits=edits, files=files), "--server", dsn)
    assert said.code == 3, said
    assert "exits with code 7 before it connects to the database, and did so 3 times" in said.err
    assert said.err.count("no such module") == 1, said.err
    assert "did not connect" not in said.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("worker", "named"),
    [
        (b"while :; do sleep 1; done", "did not connect to the database"),
        (b'psql "$DATABASE_URL" -c "select 1"; while :; do sleep 1; done', "(the job is pending)"),
        (b'while :; do psql "$DATABASE_URL?sslmode=require" -c "select 1"; sleep 1; done', "insists on TLS"),
    ],
    ids=["never connects", "never calls", "insists on TLS for ever"],
)
def test_a_worker_that_does_nothing_is_given_up(
    queueproof: CommandLine, make_subject: MakeSubject, dsn: str, worker: bytes, named: str
) -> None:
    said = queueproof("probe", make_subject(files={"worker.sh": worker}), "--server", dsn)
    assert said.code == 3
    assert named in said.err


def test_a_percent_sign_in_the_mapping_is_a_percent_sign(
    queueproof: CommandLine, make_subject: MakeSubject, dsn: str
) -> None:
    edits = [
        mapped("owner", "worker", "'100% {x} %s ' || worker"),
        mapped("key", "payload->>'key'", "payload->>'the %key'"),
    ]
    edits += [
        ("enqueue.sh", '-v payload="$line"', '-v payload="${line/key/the %key}"'),
        ("worker.sh", "payload->>'key'", "payload->>'the %key'"),
    ]
    said = queueproof("probe", make_subject(edits=edits), "--server", dsn, "--json")
    assert said.code == 0, said
    assert "claim" in json.loads(said.out)["changes"]


def test_a_worker_that_forks_and_ignores_sigterm_leaves_nothing(
    queueproof: CommandLine, make_subject: MakeSubject, dsn: str
) -> None:
    first = "trap '' TERM INT HUP\nsleep 314159 &\n(setsid sleep 271828 &)\nwhile :; do\n  id="
    folder = make_subject(edits=[("worker.sh", "while :; do\n  id=", first)])
    said = queueproof("probe", folder, "--server", dsn, "--json")
    assert said.code == 0, said
    deadline = time.monotonic() + 5
    while left := [path for path in Path("/proc").glob("[0-9]*/cmdline") if _is(path, b"314159", b"271828")]:
        assert time.monotonic() < deadline, left


def _is(cmdline: Path, *words: bytes) -> bool:
    try:
        return any(word in cmdline.read_bytes().split(b"\0") for word in words)
    except OSError:
        return False
