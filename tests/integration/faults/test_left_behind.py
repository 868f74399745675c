"""What a killed run leaves on somebody's server goes by name, with doctor --clean."""

import asyncio

import psycopg

from harness.postgres.address import Address
from harness.postgres.statements import statement
from harness.run.doctor import clean_up


def test_databases_roles_triggers_and_schema_of_a_killed_run_are_removed(database: Address) -> None:
    token = database.dbname.split("_")[1]

    async def play() -> None:
        async with await psycopg.AsyncConnection.connect(
            database.dsn(),
            autocommit=True,
            application_name=f"queueproof {token}",  # so says a run that lives
        ) as connection:
            await connection.execute("create table job (id int primary key)")
            await connection.execute("create schema queueproof")
            await connection.execute(statement("comment_schema"))
            await connection.execute(
                "create function queueproof.raises() returns trigger language plpgsql as 'begin return new; end'"
            )
            await connection.execute(
                "create trigger queueproof_raises before update on job for each row execute function queueproof.raises()"
            )
            await connection.execute("create database queueproof_0badcafe_left")
            await connection.execute("create role queueproof_worker_0badcafe")
            told = await clean_up(database.dsn())
            assert "dropped trigger queueproof_raises on job" in told
            assert "dropped database queueproof_0badcafe_left" in told
            assert "dropped role queueproof_worker_0badcafe" in told
            cursor = await connection.execute(
                "select (select count(*) from pg_trigger where tgname like 'queueproof%'),"
                " (select count(*) from pg_namespace where nspname = 'queueproof'),"
                " (select count(*) from pg_database where datname like '%0badcafe%'),"
                " (select count(*) from pg_roles where rolname like '%0badcafe%'), to_regclass('job') is null"
            )
            assert await cursor.fetchone() == (0, 0, 0, 0, False)
            again = await clean_up(database.dsn())
            assert not [line for line in again if line.startswith("dropped")]

    asyncio.run(play())
