"""The ``reference-queue`` command: install and migrate, work, enqueue, look, operate, and check before a rollout.

Exit codes: 0 done or in order, 1 refused or not in order, 2 usage, 3 the database cannot be reached.
"""

import argparse
import datetime as dt
import getpass
import json
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg.rows import dict_row

from reference_queue import migrations, operators, preflight, retention, rollout, worker
from reference_queue.enqueue import BadJob, Enqueuer, NewJob
from reference_queue.settings import BadSetting, add_options, seconds
from reference_queue.statements import MissingStatement, Statements

Connection = psycopg.Connection[Any]
FIRST = ("id", "operation_key", "state", "version", "attempts", "max_attempts", "worker_id", "lease_until", "phase")


class Usage(Exception):
    """The command line is wrong. The message says how it should be."""


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["work"]:
        return worker.main(words[1:])
    options = _parser().parse_args(words)
    try:
        return int(options.run(options))
    except (operators.Refused, migrations.CannotMigrate) as error:
        return _complain(str(error), 1)
    except (Usage, BadJob, BadSetting, MissingStatement) as error:
        return _complain(str(error), 2)
    except psycopg.errors.UndefinedTable:
        return _complain("there is no queue in this database: run reference-queue migrate", 1)
    except psycopg.errors.InsufficientPrivilege as error:
        return _complain(f"{error.diag.message_primary}; reference-queue preflight says which grant is missing", 1)
    except psycopg.OperationalError:
        # Its text may quote the connection string.
        return _complain("the database cannot be reached; see --database, DATABASE_URL or the PG* variables", 3)
    except psycopg.Error as error:
        return _complain(f"the database refused: {error.diag.message_primary}", 1)


def _complain(sentence: str, code: int) -> int:
    sys.stderr.write(f"{sentence}\n")
    return code


def _progress(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def _say(options: argparse.Namespace, value: Any) -> None:
    if options.json:
        sys.stdout.write(json.dumps(value, default=str, ensure_ascii=False) + "\n")
        return
    for row in value if isinstance(value, list) else [value]:
        sys.stdout.write((_line(row) if isinstance(row, Mapping) else str(row)) + "\n")


def _line(row: Mapping[str, Any]) -> str:
    return "  ".join(f"{name}={value}" for name, value in row.items() if value is not None)


def _connect(options: argparse.Namespace) -> Connection:
    conninfo = options.database or os.environ.get("DATABASE_URL", "")
    return psycopg.connect(conninfo, autocommit=True, connect_timeout=10, application_name="reference-queue cli")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="reference-queue", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], int], meaning: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=meaning, description=meaning)
        sub.add_argument("--database", metavar="DSN", help="libpq connection string or URL (DATABASE_URL, PG*)")
        sub.add_argument("--json", action="store_true", help="one JSON document on standard output")
        sub.set_defaults(run=run)
        return sub

    add_options(commands.add_parser("work", help="work on jobs until told to stop"))
    command("migrate", _migrate, "install the schema, or bring an older one up to date beside live workers")
    command("roles", _roles, "create the groups queue_enqueue, queue_work, queue_operate, queue_read, queue_retain")
    add = command("enqueue", _enqueue, "put a job in; the same key twice adds one job")
    add.add_argument("key")
    add.add_argument("--kind", default="default")
    add.add_argument("--payload", help="a JSON document")
    add.add_argument("--priority", type=int, default=0, help="lower runs first")
    add.add_argument("--run-at", help="a moment with its time zone, such as 2030-01-01T00:00:00+00:00")
    add.add_argument("--group", help="jobs of one group run one after the other")
    add.add_argument("--tenant")
    add.add_argument("--business-key", help="at most one unfinished job has it")
    add.add_argument("--max-attempts", type=int, default=3)
    tenant = command("tenant", _tenant, "set how many jobs of a tenant may run at once; 0 holds it back")
    tenant.add_argument("tenant")
    tenant.add_argument("--cap", type=int, required=True)
    command("status", _status, "jobs by state, what is due, and orphans")
    one = command("show", _show, "one job and its audit")
    one.add_argument("id", type=int)
    for name, move in operators.MOVES.items():
        sub = command(name, _move, move.meaning)
        sub.set_defaults(move=name)
        sub.add_argument("id", type=int)
        sub.add_argument("--state", help="the state you saw; left out, the job is shown and you are asked")
        sub.add_argument("--version", type=int, help="the version you saw")
        sub.add_argument("--lease", help="the lease_until you saw, or none")
        sub.add_argument("--reason", required=True)
        sub.add_argument("--operator", default=None, help="who you are; left out, your login name")
        if name == "confirm":
            sub.add_argument("--remote-id", required=True, help="the other side's number for what it did")
    for name in ("dead", "reconcile", "paused"):
        command(name, _list, f"the jobs that are {name}").set_defaults(state=name)
    command("check", _check, "do the audit and the jobs agree?")
    command("writers", _writers, "who else could write a job's state?")
    pre = command("preflight", _preflight, "may this role do its part, and nothing else?")
    pre.add_argument("part", choices=preflight.PARTS)
    pre.add_argument("--role", help="taken on by SET ROLE; left out, it is the login role")
    room = command("budget", _budget, "is there room for the workers' connections?")
    room.add_argument("--workers", type=int, required=True)
    room.add_argument("--slots", type=int, required=True)
    lease = command("lease", _lease, "recommend a lease from measured durations and pauses")
    lease.add_argument("--since", default="7 days", help="how far back attempts are looked at")
    lease.add_argument("--observe", default="5s", help="how long pauses are looked for")
    dark = command("shadow", _shadow, "compare what would run next with another queue's order; claims nothing")
    dark.add_argument(
        "--other", required=True, help="a query that returns the other queue's operation keys in its order"
    )
    dark.add_argument("--most", type=int, default=1000)
    keep = command("retain", _retain, "archive and delete finished jobs, in small batches")
    keep.add_argument("--keep", required=True, help="how long finished jobs stay, such as 720h")
    keep.add_argument("--batch", type=int, default=1000)
    keep.add_argument("--after", type=int, default=0, help="go on after this job id")
    keep.add_argument("--pause", default="50ms", help="between two batches")
    keep.add_argument("--between", default="00:00-23:59:59", help="the hours allowed, by the server's clock")
    return parser


def _migrate(options: argparse.Namespace) -> int:
    with _connect(options) as connection:
        version = migrations.migrate(connection, told=_progress)
    _say(options, {"version": version})
    return 0


def _roles(options: argparse.Namespace) -> int:
    with _connect(options) as connection:
        preflight.create_roles(connection)
    _say(options, [f"queue_{part}" for part in preflight.PARTS])
    return 0


def _enqueue(options: argparse.Namespace) -> int:
    try:
        payload = None if options.payload is None else json.loads(options.payload)
        run_at = None if options.run_at is None else dt.datetime.fromisoformat(options.run_at)
    except ValueError as error:
        raise Usage(
            f"--payload must be JSON and --run-at a moment with its time zone: {type(error).__name__}"
        ) from None
    job = NewJob(
        operation_key=options.key,
        kind=options.kind,
        payload=payload,
        priority=options.priority,
        run_at=run_at,
        group_key=options.group,
        tenant=options.tenant,
        business_key=options.business_key,
        max_attempts=options.max_attempts,
    )
    enqueuer = Enqueuer(options.database or os.environ.get("DATABASE_URL", ""))
    try:
        done = enqueuer.enqueue(job)
    except psycopg.errors.ForeignKeyViolation:
        raise operators.Refused(f"the tenant {options.tenant!r} is not known; reference-queue tenant adds it") from None
    finally:
        enqueuer.close()
    _say(options, {"id": done.job_id, "operation_key": done.operation_key, "added": done.added})
    return 0


def _tenant(options: argparse.Namespace) -> int:
    if not 0 <= options.cap <= 1000:
        raise Usage(f"--cap is {options.cap}; it must be from 0 to 1000")
    with _connect(options) as connection:
        connection.execute(
            Statements().text("set_tenant"), {"tenant_name": options.tenant, "most_running": options.cap}
        )
    _say(options, {"tenant_name": options.tenant, "most_running": options.cap})
    return 0


def _rows(connection: Connection, name: str) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(Statements().text(name)).fetchall()


def _status(options: argparse.Namespace) -> int:
    with _connect(options) as connection:
        _say(options, _rows(connection, "status"))
    return 0


def _show(options: argparse.Namespace) -> int:
    with _connect(options) as connection:
        job = operators.show(connection, options.id)
    _say(options, job if options.json else [{k: v for k, v in job.items() if k != "audit"}, *job["audit"]])
    return 0


def _list(options: argparse.Namespace) -> int:
    with _connect(options) as connection:
        _say(options, operators.listed(connection, options.state))
    return 0


def _move(options: argparse.Namespace) -> int:
    given = (options.state, options.version, options.lease)
    if any(value is None for value in given) and any(value is not None for value in given):
        raise Usage("--state, --version and --lease go together: they say which sight of the job you decided on")
    with _connect(options) as connection:
        job = operators.show(connection, options.id)
        seen = operators.Seen(job["state"], job["version"], job["lease_until"])
        if options.state is None:
            sys.stderr.write(
                "\n".join(f"{name:15} {job[name]}" for name in FIRST) + f"\n{options.move} this job? (yes/no) "
            )
            sys.stderr.flush()
            if sys.stdin.readline().strip().lower() != "yes":
                raise operators.Refused("not confirmed; nothing was changed")
        else:
            seen = operators.Seen(options.state, options.version, _lease_seen(options.lease))
        operator = options.operator or getpass.getuser()
        remote_id = getattr(options, "remote_id", None)
        moved = operators.move(
            connection, options.move, options.id, seen, operator=operator, reason=options.reason, remote_id=remote_id
        )
    _say(options, dict(moved))
    return 0


def _lease_seen(text: str) -> dt.datetime | None:
    if text == "none":
        return None
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        raise Usage(f"--lease is {text!r}; give it as show prints it, or none") from None


def _check(options: argparse.Namespace) -> int:
    with _connect(options) as connection:
        found = _rows(connection, "consistent")
    _say(options, found)
    return 1 if found else 0


def _writers(options: argparse.Namespace) -> int:
    with _connect(options) as connection:
        found = rollout.state_writers(connection)
    _say(options, found)
    return 1 if found else 0


def _preflight(options: argparse.Namespace) -> int:
    with _connect(options) as connection:
        found = preflight.preflight(connection, options.part, options.role)
    _say(options, found)
    return 1 if found else 0


def _budget(options: argparse.Namespace) -> int:
    if options.workers < 1 or options.slots < 1:
        raise Usage("--workers and --slots must be at least 1")
    with _connect(options) as connection:
        refusal = rollout.budget(connection, options.workers, options.slots)
    if refusal is not None:
        raise operators.Refused(refusal)
    _say(options, {"connections": options.workers * rollout.connections_of(options.slots)})
    return 0


def _duration(flag: str, text: str) -> float:
    found = seconds(text)
    if found is None:
        raise Usage(f"--{flag} is {text!r}; it must be a time such as 500ms, 30s or 720h")
    return found


def _lease(options: argparse.Namespace) -> int:
    observe = _duration("observe", options.observe)
    with _connect(options) as connection:
        measured = rollout.durations(connection, options.since)
        if not measured:
            raise operators.Refused(
                f"no attempt has ended in the last {options.since}: there is nothing to measure a lease by"
            )
        pause = rollout.longest_pause(connection, observe)
    advice = []
    for row in measured:
        found = rollout.recommend_lease(row["p99"], pause, row["attempts"])
        advice.append({"kind": row["kind"], **vars(found)})
    _say(options, advice)
    return 0


def _shadow(options: argparse.Namespace) -> int:
    with _connect(options) as connection:
        found = rollout.shadow(connection, options.other, options.most)
    _say(options, {**vars(found), "agrees": found.agrees})
    return 0 if found.agrees else 1


def _retain(options: argparse.Namespace) -> int:
    hours = re.fullmatch(r"([0-9:]+)-([0-9:]+)", options.between)
    try:
        if hours is None:
            raise ValueError
        between = (dt.time.fromisoformat(hours[1]), dt.time.fromisoformat(hours[2]))
    except ValueError:
        raise Usage(f"--between is {options.between!r}; it must be like 22:00-06:00") from None
    if not 1 <= options.batch <= 10_000:
        raise Usage(f"--batch is {options.batch}; it must be from 1 to 10000")
    keep = dt.timedelta(seconds=_duration("keep", options.keep))
    deleted, last = 0, options.after
    with _connect(options) as connection:
        steps = retention.retain(
            connection,
            keep,
            batch=options.batch,
            after=options.after,
            pause_seconds=_duration("pause", options.pause),
            hours=between,
        )
        for step in steps:
            deleted += step.deleted
            last = step.last if step.last is not None else last
    _say(options, {"deleted": deleted, "last": last})
    return 0


if __name__ == "__main__":
    sys.exit(main())
