"""Each grant is needed, none is too many, and preflight names exactly the one that is wrong."""

from importlib import resources

import psycopg
import pytest
from psycopg import sql

from reference_queue.preflight import _GRANT, PARTS, create_roles, preflight
from reference_queue.rollout import state_writers
from tests.integration.reference_queue.conftest import Queue

FILES = [
    file
    for file in resources.files("reference_queue").joinpath("sql", "roles").iterdir()
    if "grant" in file.name or "_" in file.name
]
GRANTS = sorted(
    (match for file in FILES if (match := _GRANT.search(file.read_text()))), key=lambda match: (match[4], match[0])
)


@pytest.fixture
def roles(queue: Queue) -> Queue:
    create_roles(queue.connection)
    return queue


def test_the_groups_fit_exactly(roles: Queue) -> None:
    assert {part: preflight(roles.connection, part, f"queue_{part}") for part in PARTS} == {part: [] for part in PARTS}


@pytest.mark.parametrize("part", PARTS)
def test_each_grant_removed_in_turn_is_named_and_so_is_one_too_many(roles: Queue, part: str) -> None:
    role = f"queue_{part}"
    for grant in (grant for grant in GRANTS if grant[4] == part):
        words = f"{grant[1]}{f' ({grant[2]})' if grant[2] else ''} on {grant[3]}"
        roles.run(f"revoke {words} from {role}")
        missing = [line for line in preflight(roles.connection, part, role) if not line.startswith("refused")]
        roles.run(f"grant {words} to {role}")
        assert len(missing) == 1, (words, missing)
        assert missing[0].startswith(f"missing: grant {grant[1]}")
        assert missing[0].endswith(f" on {grant[3]} to {role}")
        if grant[2]:
            assert set(missing[0].split("(")[1].split(")")[0].split(", ")) == {
                name.strip() for name in grant[2].split(",")
            }
    roles.run(f"grant truncate on queue_job to {role}")
    assert preflight(roles.connection, part, role) == [f"excessive: revoke truncate on queue_job from {role}"]
    roles.run(f"revoke truncate on queue_job from {role}")


def test_preflight_changes_nothing_and_refuses_a_superuser(roles: Queue) -> None:
    roles.enqueue("k")
    before = roles.job("k")
    for part in PARTS:
        preflight(roles.connection, part, f"queue_{part}")
    assert roles.job("k") == before
    assert roles.run("select count(*) as n from queue_job") == [{"n": 1}]
    assert "superuser" in preflight(roles.connection, "work")[0]


def test_who_enqueues_cannot_claim(roles: Queue) -> None:
    roles.enqueue("k")
    with roles.connection.transaction(force_rollback=True):
        roles.run("set local role queue_enqueue")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), roles.connection.transaction():
            roles.claim()
        assert roles.enqueue("k2") is not None


def test_a_stranger_that_may_write_the_state_is_found(roles: Queue) -> None:
    assert state_writers(roles.connection) == []
    stranger = sql.Identifier("queue_test_stranger")
    roles.connection.execute(sql.SQL("drop role if exists {}").format(stranger))
    roles.connection.execute(sql.SQL("create role {}").format(stranger))
    roles.connection.execute(sql.SQL("grant update (state) on queue_job to {}").format(stranger))
    assert state_writers(roles.connection) == [{"role": "queue_test_stranger", "may_write": "the state"}]
    roles.connection.execute(sql.SQL("drop owned by {}").format(stranger))
    roles.connection.execute(sql.SQL("drop role {}").format(stranger))
