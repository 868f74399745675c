"""What each key of a ``subject.toml`` means: the one place that says so, for mistakes in a file and for ``explain``.

What a key takes, and its default, are read off the models in ``subject_tables``; only meaning, example and what follows from
leaving it out are written here.
"""

import json
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from harness.processes.placeholders import NAMES
from harness.run.subject_tables import Duration, DurationOrNever, Takes, keys_of, model_at

FILLED = ", ".join(f"{{{name}}}" for name in NAMES)


@dataclass(frozen=True)
class Key:
    """``meaning`` follows on a colon. ``left_out`` is what happens without it, where no default of the model says so."""

    meaning: str
    example: str
    left_out: str = ""


KEYS = {
    "subject": Key("the table that everything else stands in", "[subject]"),
    "subject.name": Key("what reports call it", 'name = "my-queue"'),
    "subject.extends": Key(
        'the folder of another subject that this one overlays, or "reference_queue"; what is given here wins',
        'extends = "../other"',
        "it stands for itself",
    ),
    "subject.guarantee": Key(
        '"at-least-once" or "effectively-once"; with the second no job may have two effects, whatever happens',
        'guarantee = "at-least-once"',
    ),
    "subject.order": Key(
        "the order of claims that it promises: run_at (earlier first), priority (smaller first, then run_at), per-key (of"
        " one group one at a time, in the order of enqueueing), or none",
        'order = "run_at"',
    ),
    "subject.lease": Key(
        "how long a worker owns a job that it does not renew, as configured in this run; short, so that a run takes seconds",
        'lease = "2s"',
        "not declared; what is about a lease does not apply",
    ),
    "subject.heartbeat": Key(
        "how often a worker renews the leases of what it holds; needs subject.lease",
        'heartbeat = "500ms"',
        "not declared; that a lease ends under a call is then no finding",
    ),
    "subject.poll": Key(
        "how long an idle worker waits before it looks again; interleavings are explored only with it",
        'poll = "100ms"',
        "not declared",
    ),
    "subject.takeover_within": Key(
        'how long after a worker\'s death another one has its job, such as "4s", or "never"',
        'takeover_within = "4s"',
    ),
    "subject.max_attempts": Key(
        "how often a job is started at most; one that kills its worker every time ends then",
        "max_attempts = 3",
        "not declared; bounds are not judged",
    ),
    "subject.sink": Key(
        "the kind of outside that it is made for, which the gate then plays: naive (applies every call), keyed (applies an"
        " operation key once), fenced (refuses an older token)",
        'sink = "keyed"',
        '"keyed" where the guarantee is "effectively-once", else "naive"',
    ),
    "subject.recovery": Key(
        "what a worker does about a call of unknown outcome: ask (asks the outside before it calls again), replay (calls"
        " again with the same operation key), repeat (just calls again)",
        'recovery = "ask"',
        '"replay" where the guarantee is "effectively-once", else "repeat"',
    ),
    "subject.clock": Key(
        "whose clock decides when a lease is over; with the worker's, the length of leases is not judged",
        'clock = "database"',
    ),
    "subject.install": Key(
        "how its tables are made: install.sql or install.command",
        "[subject.install]",
        "nothing is installed; then install.after_start, or the table is there already",
    ),
    "subject.install.sql": Key(
        "files with its tables, run in this order", 'install.sql = ["schema.sql"]', "no file is run"
    ),
    "subject.install.command": Key(
        f"a program that makes its tables, such as a migration; it finds the database in DATABASE_URL. Filled in: {FILLED}",
        'install.command = ["{python}", "migrate.py"]',
        "no program is run",
    ),
    "subject.install.after_start": Key(
        "whether its tables exist only once a worker has been started", "install.after_start = true"
    ),
    "subject.enqueue": Key("how a job is put in: enqueue.sql or enqueue.command", "[subject.enqueue]"),
    "subject.enqueue.sql": Key(
        "the statement that puts one job in, or the name of its file",
        'enqueue.sql = "insert into jobs (key) values (%(key)s)"',
        "enqueue.command puts jobs in",
    ),
    "subject.enqueue.command": Key(
        'a program that reads a line {"key": ...} per job, puts the job in, and then prints a line for it',
        'enqueue.command = ["bash", "enqueue.sh"]',
        "enqueue.sql puts jobs in",
    ),
    "subject.consistent": Key(
        "its own check of its tables: consistent.sql", "[subject.consistent]", "its tables are not compared"
    ),
    "subject.consistent.sql": Key(
        "a query that returns no row at any quiet moment", 'consistent.sql = "select id from jobs where version < 0"'
    ),
    "subject.worker": Key(
        "how a worker is started: command, env, restarts", "[subject.worker]", "our own worker runs [subject.sql]"
    ),
    "subject.worker.command": Key(
        f"the program of one worker, started in the subject's folder once per worker. Filled in: {FILLED}",
        'command = ["{python}", "worker.py"]',
        "our own worker runs [subject.sql]",
    ),
    "subject.worker.env": Key(
        "its environment beside DATABASE_URL, QUEUEPROOF_SINK, QUEUEPROOF_WORKER and QUEUEPROOF_SLOTS; filled in as in the"
        " command, durations in seconds",
        'env = { LEASE = "{lease}", POLL = "{poll}" }',
    ),
    "subject.worker.restarts": Key("what its supervisor does when a worker has ended", 'restarts = "always"'),
    "subject.jobs": Key("how to read its table: table, id, key, state", "[subject.jobs]"),
    "subject.jobs.table": Key("the table that holds the jobs", 'table = "jobs"'),
    "subject.jobs.id": Key("the expression of a row's identity", 'id = "id"'),
    "subject.jobs.key": Key("the expression of the key that a job was enqueued with", "key = \"payload->>'key'\""),
    "subject.jobs.state": Key(
        "the expression of its state: pending, retry, running, done, dead, paused or reconcile",
        "state = \"case status when 'new' then 'pending' else status end\"",
    ),
    "subject.jobs.owner": Key("the expression of who holds it", 'owner = "worker"', "it shows no owner"),
    "subject.jobs.token": Key(
        "the expression of its fencing token, only where writes after the claim are fenced by it",
        'token = "version"',
        "it has no token; fences are not judged",
    ),
    "subject.jobs.token_order": Key(
        "whether a later grant's token is promised to be greater; needs subject.jobs.token",
        'token_order = "increasing"',
    ),
    "subject.jobs.lease_until": Key(
        "the expression of its lease's end, of type timestamptz; where a job times out so long after it was locked, with"
        " {lease} for the seconds, such as locked_at + make_interval(secs => {lease})",
        'lease_until = "lease_until"',
        "it shows no lease's end",
    ),
    "subject.jobs.attempts": Key(
        "the expression of how often it was started, of type integer", 'attempts = "attempts"', "it shows no attempts"
    ),
    "subject.jobs.run_at": Key(
        'the expression of when it is due, of type timestamptz; order = "run_at" needs it',
        'run_at = "run_at"',
        "it shows no due time",
    ),
    "subject.jobs.priority": Key(
        'the expression of its priority; order = "priority" is judged by the %(priority)s that was enqueued, not by this',
        'priority = "priority"',
        "it shows no priority",
    ),
    "subject.jobs.group": Key(
        "the expression of its group, of which one job runs at a time; judged with %(group)s in subject.enqueue.sql",
        'group = "customer"',
        "it has no groups",
    ),
    "subject.jobs.deleted": Key("the state that a deleted row means", 'deleted = "done"'),
    "subject.jobs.from": Key(
        "the FROM clause to read by, where one table is not enough",
        'from = "jobs join payloads using (id)"',
        "subject.jobs.table alone is read",
    ),
    "subject.sql": Key(
        "the statements of a queue without a worker program; our own worker runs them",
        "[subject.sql]",
        "subject.worker.command runs it",
    ),
    "subject.sql.claim": Key(
        "the statement that takes jobs and returns id, key and, if it fences, token", 'claim = "claim.sql"'
    ),
    "subject.sql.complete": Key("the statement that marks a job done", 'complete = "complete.sql"'),
    "subject.sql.renew": Key(
        "the statement that renews a lease, run for each held job at every subject.heartbeat",
        'renew = "renew.sql"',
        "leases are not renewed",
    ),
    "subject.sql.fail": Key(
        "the statement for a job that is wrong in itself (the outside answered 4xx)",
        'fail = "fail.sql"',
        "such a job is left to its lease",
    ),
    "subject.sql.release": Key(
        "the statement that gives back what was claimed and not started",
        'release = "release.sql"',
        "it is left to its lease",
    ),
    "subject.sql.retry": Key(
        "the statement after a call that failed (5xx, or a broken connection)", 'retry = "retry.sql"', "release is run"
    ),
    "subject.sql.expire": Key(
        "the statement that puts back jobs whose lease is over, run by each worker after its claim",
        'expire = "expire.sql"',
        "claim itself has to take them",
    ),
    "subject.statements": Key(
        "corrections to what the probe learned, by kind of change", "[subject.statements]", "what was learned counts"
    ),
    **{
        f"subject.statements.{change}": Key(
            f"regular expressions of the statements that {what}, and of no others; as probe prints them",
            f'{change} = "^update jobs set .*"',
        )
        for change, what in {
            "enqueue": "put a job in",
            "claim": "grant a job",
            "renew": "renew a lease",
            "release": "give a job back without a result",
            "fail": "write a failure down",
            "complete": "mark a job done",
            "retire": "remove finished jobs",
        }.items()
    },
    "subject.known": Key(
        'findings that are accepted, each "scenario:invariant" with the reason',
        'known = { "worker_late_complete_after_takeover:no_stale_write" = "until the fence is deployed" }',
    ),
    "subject.broken": Key(
        "of a queue that is broken on purpose: class, caught_by, by", "[subject.broken]", "it is meant to be right"
    ),
    "subject.broken.class": Key("the class of faults that it stands for, a letter from A to R", 'class = "C"'),
    "subject.broken.caught_by": Key("the invariant that must catch it", 'caught_by = "no_stale_write"'),
    "subject.broken.by": Key(
        "the scenarios in which it must be caught", 'by = ["worker_late_complete_after_takeover"]'
    ),
}


def named(said: str) -> list[str]:
    """The paths of the keys that are called so: one whole path, with or without ``subject.``, or else by the last word."""
    whole = [path for path in KEYS if said in {path, path.removeprefix("subject.")}]
    return whole or [path for path in KEYS if path.rpartition(".")[2] == said]


def table_of(path: str) -> str:
    """The table under which the example of a key stands; a dotted one stands in its table's parent."""
    parent = path.rpartition(".")[0]
    dotted = KEYS[path].example.startswith(f"{parent.rpartition('.')[2]}.")
    return parent.rpartition(".")[0] if dotted else parent


def takes(path: str) -> str:
    """Which values a key takes."""
    model, own = _field(path)
    return _described(get_type_hints(model, include_extras=True)[own])


def default(path: str) -> str | None:
    """What holds when a key is left out; None when it must be given."""
    model, own = _field(path)
    field = model.model_fields[own]
    if field.is_required():
        return None
    if said := KEYS[path].left_out:
        return said
    return json.dumps(field.default) if isinstance(field.default, str | bool) else "empty"


def _field(path: str) -> tuple[type[BaseModel], str]:
    """The model that a key belongs to, and its name there, which an alias may hide."""
    *above, name = path.split(".")
    model = model_at(tuple(above))
    own = [own for own, info in model.model_fields.items() if name == (info.alias or own)] if model is not None else []
    if model is None or not own:
        raise KeyError(path)
    return model, own[0]


def _described(hint: Any) -> str:
    if hint in (Duration, DurationOrNever):
        return 'a duration such as "2s", "500ms" or "1m"' + (', or "never"' if hint == DurationOrNever else "")
    arguments = get_args(hint)
    match get_origin(hint):
        case origin if origin is Annotated:
            return _described(arguments[0]) + "".join(map(_restricted, arguments[1:]))
        case origin if origin in (Union, UnionType):
            return " or ".join(_described(one) for one in arguments if one is not type(None))
        case origin if origin is Literal:
            return ", ".join(f'"{one}"' for one in arguments)
        case origin if origin is list:
            return "a list of texts"
        case origin if origin is dict:
            return "a table of texts"
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return f"a table of {', '.join(keys_of(hint))}"
    return {str: "a text", int: "a whole number", bool: "true or false"}[hint]


def _restricted(by: Any) -> str:
    """What an annotation adds to its type, in words."""
    if isinstance(by, Takes):
        return " of SQL, or the name of a .sql file; parameters: " + (
            ", ".join(f"%({name})s" + (" (needed)" if name in by.needs else "") for name in by.allowed) or "none"
        )
    return "".join(f", {each.ge} or more" for each in getattr(by, "metadata", ()) if hasattr(each, "ge"))
