"""Somebody else's server: clear about what it lacks, silent about its password, and left as it was found."""

from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

from harness.postgres.address import Address
from tests.integration.cli.conftest import PASSWORD, CommandLine, MakeSubject, left_on, things_in

SPELLINGS = (PASSWORD, quote(PASSWORD, safe=""), quote(PASSWORD))
TELLTALE = ("worker.sh", "set -u", 'set -u\nenv; echo "$PGPASSWORD"; printf "%s\\n" "$DATABASE_URL"')


def test_one_database_is_left_as_it_was_found(queueproof: CommandLine, make_subject: MakeSubject, own: Address) -> None:
    said = queueproof("gate", make_subject(), "--only", "killed_between_lock_and_commit", "--server", own.url())
    assert said.code == 0, said
    assert things_in(own) == []


def test_a_password_is_in_no_print_and_no_file(
    queueproof: CommandLine, make_subject: MakeSubject, own: Address
) -> None:
    folder = make_subject(edits=[TELLTALE])
    said = queueproof("gate", folder, "--only", "late_complete", "--server", own.url(), "--json")
    assert said.code in {0, 1}, said
    broken = make_subject(edits=[TELLTALE], files={"worker.sh": b'env; echo "$DATABASE_URL"; exit 1'})
    failed = queueproof("probe", broken, "--server", own.url())
    assert failed.code == 3
    assert "***" in failed.err
    kept = [path for path in (queueproof.folder / ".queueproof").rglob("*") if path.is_file()]
    assert any(path.name.startswith("worker-") for path in kept)
    for spelling in SPELLINGS:
        assert spelling not in said.out + said.err + failed.out + failed.err
        assert [path for path in kept if spelling.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("command", ["gate", "probe", "doctor"])
def test_a_wrong_password_is_told_without_it(queueproof: CommandLine, own: Address, command: str) -> None:
    address = own.as_user("poor", "wr/ong@password")
    said = queueproof(command, "--server", address.url())
    assert said.code == (3 if command == "doctor" else 2)
    assert "password authentication failed" in said.err + said.out
    for spelling in ("wr/ong", quote("wr/ong@password", safe="")):
        assert spelling not in said.err + said.out


@pytest.mark.parametrize(
    "server",
    [
        "postgresql://u:sec/ret@h:99999/x",
        "postgresql://u:sec@ret@:5432:1/x",
        "postgres://u:secret@[::1/x",
        "host=h password=secret port=99999",
        "host=h password='sec ret",
        "password=secret",
    ],
)
def test_a_broken_address_is_told_without_its_password(queueproof: CommandLine, server: str) -> None:
    queueproof.env["PGPORT"] = "1"
    for words in (["gate", "--server", server], ["doctor", "--clean", server]):
        said = queueproof(*words)
        assert said.code in {2, 3}
        assert "sec" not in said.err.replace("within 5 s", "").replace("second", ""), said
    assert [p for p in queueproof.folder.rglob("*") if p.is_file() and b"secret" in p.read_bytes()] == []


def test_nobody_there_is_trouble_of_the_environment(queueproof: CommandLine) -> None:
    said = queueproof("gate", "--server", "postgresql://u:secret@127.0.0.1:1/x")
    assert said.code == 3
    assert "is the server up" in said.err
    assert "secret" not in said.err


def test_a_database_that_is_not_empty_is_refused_and_what_was_there_survives(
    queueproof: CommandLine, make_subject: MakeSubject, own: Address
) -> None:
    with psycopg.connect(own.dsn(), autocommit=True) as connection:
        connection.execute("create table orders (id int)")
        connection.execute("insert into orders values (1)")
    folder = make_subject()
    refused = queueproof("probe", folder, "--server", own.url())
    assert refused.code == 2
    assert "orders" in refused.err
    assert "--allow-existing" in refused.err
    assert things_in(own) == ["relation orders"]

    allowed = queueproof("probe", folder, "--server", own.url(), "--allow-existing")
    assert allowed.code == 0, allowed
    assert things_in(own) == ["relation orders"]

    broken = make_subject(files={"worker.sh": b"exit 1"})
    failed = queueproof("probe", broken, "--server", own.url(), "--allow-existing")
    assert failed.code == 3
    assert things_in(own) == ["relation orders"]


def test_a_table_of_somebody_elses_cannot_be_watched(
    queueproof: CommandLine, make_subject: MakeSubject, host: Address, own: Address
) -> None:
    with psycopg.connect(host.at(own.dbname).dsn(), autocommit=True) as connection:
        connection.execute((make_subject() / "schema.sql").read_text())
        connection.execute("grant all on jobs to poor")
    folder = make_subject(edits=[("subject.toml", 'install.sql     = "schema.sql"', "")])
    said = queueproof("probe", folder, "--server", own.url(), "--allow-existing")
    assert said.code == 3, said
    assert "cannot watch the table jobs" in said.err
    assert all(not thing.startswith(("schema", "trigger", "function")) for thing in things_in(own))


def test_a_user_who_may_create_nothing(queueproof: CommandLine, own: Address, make_subject: MakeSubject) -> None:
    said = queueproof("probe", make_subject(), "--server", own.as_user("guest").url())
    assert said.code == 3
    assert "may create neither databases nor schemas" in said.err


def test_somebodys_own_schema_of_our_name_is_left_alone(
    queueproof: CommandLine, own: Address, make_subject: MakeSubject
) -> None:
    with psycopg.connect(own.dsn(), autocommit=True) as connection:
        connection.execute("create schema queueproof")
        connection.execute("create table queueproof.theirs (id int)")
        connection.execute("create table orders (id int)")
        connection.execute("create function touch() returns trigger language plpgsql as $$ begin return new; end $$")
        connection.execute(
            "create trigger queueproof_mine before insert on orders for each row execute function touch()"
        )
    before = things_in(own)
    for words in (
        ["doctor", "--clean", own.url()],
        ["probe", make_subject(), "--server", own.url(), "--allow-existing"],
    ):
        said = queueproof(*words)
        assert said.code == (0 if words[0] == "doctor" else 3), said
        assert things_in(own) == before
    assert "schema named queueproof" in said.err


def test_databases_of_our_own_go_with_the_run(
    queueproof: CommandLine, make_subject: MakeSubject, host: Address
) -> None:
    address = host.as_user("maker", PASSWORD)
    said = queueproof("gate", make_subject(edits=[TELLTALE]), "--only", "late_complete", "--server", address.url())
    assert said.code in {0, 1}, said
    assert left_on(host) == []
    kept = b"".join(path.read_bytes() for path in Path(queueproof.folder, ".queueproof").rglob("*") if path.is_file())
    assert not any(spelling.encode() in kept for spelling in SPELLINGS)
