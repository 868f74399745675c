"""The command line: the composition root, and the only importer of scenarios and reports.

Standard output is the result, standard error is progress. No traceback reaches a user.
"""

import asyncio
import contextlib
import io
import os
import shlex
import signal
import sys
import tomllib
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from harness.contracts.problem import BadInput, EnvironmentFailed, Problem
from harness.contracts.verdict import Verdict
from harness.event_loop import new_event_loop

HELD, BROKEN, USAGE, FAILED, INCONCLUSIVE, INTERRUPTED = 0, 1, 2, 3, 4, 130
EXIT_OF = {
    Verdict.PASS: HELD,
    Verdict.FAIL: BROKEN,
    Verdict.INCONCLUSIVE: INCONCLUSIVE,
    Verdict.NOT_APPLICABLE: INCONCLUSIVE,
}
EXITS = "Exit codes: 0 held, 1 broken, 2 usage, 3 harness or environment failed, 4 inconclusive, 130 interrupted."

app = typer.Typer(
    name="queueproof",
    help="Proves the claim protocol of a PostgreSQL job queue, or shows the interleaving that breaks it.",
    epilog=EXITS,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        from harness.run.version import VERSION

        print(VERSION)
        raise typer.Exit


SubjectArgument = Annotated[
    Path | None,
    typer.Argument(metavar="SUBJECT", help="A folder or a subject.toml; left out, the reference queue."),
]
Server = Annotated[
    str,
    typer.Option(
        help="embedded, local[:BINDIR], docker[:IMAGE], or postgresql://user@host:port/database.", metavar="SERVER"
    ),
]
Pg = Annotated[str | None, typer.Option("--pg", help="PostgreSQL's major version: 16, 17 or 18.", metavar="VERSION")]
Seed = Annotated[int | None, typer.Option(help="Makes the same plan again.", metavar="N")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
AllowExisting = Annotated[bool, typer.Option(help="Use a database of yours although it is not empty.")]
Runs = Annotated[Path, typer.Option(help="Where .queueproof/ is made.", metavar="FOLDER")]


@app.callback()
def everything(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version, and nothing else.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """What stands before any command."""


def main() -> NoReturn:
    """Maps every way out to an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a sign is shown another
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(_main())
    finally:
        _let_go_of(sys.stdout)
        _answer_signals(signal.SIG_DFL)  # all is done and told: the interpreter's own end is nothing to interrupt


def _answer_signals(how: Any) -> None:
    """SIGTERM ends us as Ctrl-C does, also while no event loop listens for it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, how)


def _main() -> int:
    try:
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # else the way in answers them, until work begins
            _answer_signals(signal.default_int_handler)
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # typer turns Ctrl-C into this
            raise KeyboardInterrupt
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted; everything that was started has been ended")
        return INTERRUPTED
    except typer.Exit as done:
        return done.exit_code
    except BrokenPipeError:
        return FAILED  # whoever read the result has gone; there is nobody to tell
    except Problem as problem:
        for line in str(problem).splitlines():
            _say(line)
        return problem.exit_code
    except Exception as error:  # noqa: BLE001  no traceback reaches a user
        return _unexpected(error)
    return code if isinstance(code, int) else HELD


def _let_go_of(stream: Any) -> None:
    """Whoever read it may be gone; the interpreter must not stumble over that at its own end."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _unexpected(error: Exception) -> int:
    usage = getattr(error, "exit_code", None)
    if usage == USAGE and hasattr(error, "format_message"):
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "queueproof"
        # Without a command, click's sentence is its whole help.
        _say(error.format_message() if "\n" in error.format_message() else _usage(error.format_message(), command))
        return USAGE
    if os.environ.get("QUEUEPROOF_TRACEBACK"):
        raise error
    _say(
        f"the harness itself failed: {type(error).__name__}: {error}; this says nothing about the queue."
        " Set QUEUEPROOF_TRACEBACK=1 to see where, and report it"
    )
    return FAILED


def _usage(sentence: str, command: str) -> str:
    return f"{sentence.rstrip('.')}; see: {command} --help"


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    """Run to the end; SIGTERM ends the run as Ctrl-C does, with everything healed."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        loop = runner.get_loop()
        task = loop.create_task(work)
        interrupted: list[int] = []

        def stop(number: int) -> None:
            if interrupted:
                return  # cleaning up already; a second Ctrl-C must not cut that short
            interrupted.append(number)
            _say("stopping: healing faults, ending workers and servers")
            task.cancel()

        problems: list[Problem] = []

        def trouble(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
            """What nobody waits for has failed, such as recording what came in over a socket."""
            error = context.get("exception")
            if isinstance(error, Problem):
                if not problems and not interrupted:  # once: what follows must not cut the cleaning up short
                    task.cancel()
                problems.append(error)
            elif os.environ.get("QUEUEPROOF_TRACEBACK"):
                loop.default_exception_handler(context)
            else:
                _say(f"trouble of the harness: {context.get('message')} ({type(error).__name__}: {error})")

        loop.set_exception_handler(trouble)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop, number)
        try:
            return loop.run_until_complete(task)
        except asyncio.CancelledError:
            if problems:
                raise problems[0] from None
            raise KeyboardInterrupt from None
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
            _answer_signals(signal.default_int_handler)


def _subject(named: Path | None) -> Any:
    from harness.run.subject_file import load_subject, reference_queue_folder

    return load_subject(named if named is not None else reference_queue_folder())


def _known(file: Path | None) -> dict[tuple[str, str], str]:
    """Accepted findings from a TOML file: ``[[known]]`` with scenario, invariant and reason."""
    if file is None:
        return {}
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"--known {file}: cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"--known {file}: not TOML: {error}") from error
    mistakes = [
        f"--known {file}: unknown key {key!r}; only [[known]] tables stand here" for key in tables if key != "known"
    ]
    entries = tables.get("known", [])
    if not isinstance(entries, list):
        mistakes.append(f"--known {file}: known is no list of tables; write [[known]]")
        entries = []
    wanted = {"scenario", "invariant", "reason"}
    accepted: dict[tuple[str, str], str] = {}
    for number, entry in enumerate(entries, 1):
        if not isinstance(entry, dict) or set(entry) != wanted or not all(isinstance(v, str) for v in entry.values()):
            mistakes.append(f"--known {file}: entry {number} needs exactly scenario, invariant and reason, as text")
            continue
        accepted[entry["scenario"], entry["invariant"]] = entry["reason"]
        mistakes += [
            f"--known {file}: entry {number}: {stranger}"
            for stranger in _strangers(entry["scenario"], entry["invariant"])
        ]
    if mistakes:
        raise BadInput(*mistakes)
    return accepted


def _strangers(scenario: str, invariant: str) -> list[str]:
    """What is wrong with the names of an accepted finding; one that names nothing would accept nothing, unseen."""
    from harness.invariants import discover as discover_invariants
    from scenarios import discover as discover_scenarios

    invariants = [each.name for each in discover_invariants()]
    return [
        f"no {what} is called {name!r}{_near(name, names)}"
        for what, name, names in (("scenario", scenario, [*discover_scenarios()]), ("invariant", invariant, invariants))
        if name not in names
    ]


def _near(name: str, names: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(name, names, n=3)
    return f"; did you mean {', '.join(near)}?" if near else "; see: queueproof list"


@app.command(epilog=f"Example: queueproof gate my-queue/ --only killed --server local\n\n{EXITS}")
def gate(
    subject: SubjectArgument = None,
    only: Annotated[list[str] | None, typer.Option(help="Scenarios with this in their name; may be repeated.")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="Not the scenarios with this in their name.")] = None,
    repeat: Annotated[int, typer.Option(min=1, max=1000, help="Play each scenario this often.")] = 1,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first failure.")] = False,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Play on after a duplicate execution.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the databases, and print how to open them.")] = False,
    known: Annotated[Path | None, typer.Option(help="Findings that are accepted, as TOML.", metavar="FILE")] = None,
    server: Server = "embedded",
    pg: Pg = None,
    seed: Seed = None,
    side_by_side: Annotated[int, typer.Option(min=1, max=64, help="How many scenarios play at once.")] = 6,
    allow_existing: AllowExisting = False,
    runs: Runs = Path(),
    as_json: Json = False,
) -> int:
    """Play the scenarios against a queue on real PostgreSQL, and judge what happened."""
    from harness.postgres.options import parse_server
    from harness.run import keep as kept
    from harness.run.gate import GateOptions, Listener, choose, run_gate
    from reports import as_text, discover
    from scenarios import discover as discover_scenarios

    chosen = choose(discover_scenarios(), only or [], skip or [])
    option = parse_server(server, pg)
    accepted = _known(known)
    loaded = _subject(subject)
    accepted |= _known_of(loaded)
    number = seed if seed is not None else kept.new_seed()
    folder = kept.new_run(runs, number)
    options = GateOptions(
        subject=loaded,
        subject_argument=str(subject) if subject is not None else None,
        scenarios=chosen,
        server=option,
        folder=folder,
        command=_command_line(),
        seed=number,
        repeat=repeat,
        fail_fast=fail_fast,
        keep_going=keep_going,
        keep=keep,
        side_by_side=side_by_side,
        allow_existing=allow_existing,
        known=accepted,
    )
    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    listener = Listener(
        doing=lambda what: _say(f"  {what} ..."),
        played=lambda play: _say(as_text.line(play, colour=colour, width=_width())),
    )
    document = _run(run_gate(options, listener))
    for face in discover().values():
        kept.write(folder, face.FILENAME, face.render(document))
    if as_json:
        sys.stdout.buffer.write(discover()["json"].render(document))
    else:
        sys.stdout.buffer.write(as_text.render(document, colour=sys.stdout.isatty() and colour, width=_width()))
    sys.stdout.flush()
    _say(f"reports are in {folder}/")
    return EXIT_OF[Verdict(document.verdict)]


def _known_of(subject: Any) -> dict[tuple[str, str], str]:
    """What the subject itself says is accepted."""
    accepted: dict[tuple[str, str], str] = {}
    mistakes: list[str] = []
    for name, reason in subject.known.items():
        scenario, _, invariant = name.partition(":")
        mistakes += [f"subject.known.{name!r}: {stranger}" for stranger in _strangers(scenario, invariant)]
        accepted[scenario, invariant] = reason
    if mistakes:
        raise BadInput(*mistakes)
    return accepted


def _command_line() -> str:
    """What was typed, without a password that may stand in a connection string."""
    from harness.postgres.options import without_password

    return shlex.join(["queueproof", *(without_password(word) for word in sys.argv[1:])])


def _width() -> int | None:
    """The terminal's width, or None when nobody watches."""
    if not sys.stdout.isatty():
        return None
    with contextlib.suppress(OSError):
        return os.get_terminal_size(sys.stdout.fileno()).columns
    return None


@app.command(epilog=f"Example: queueproof drill server_restarted_fast sink_down worker_paused my-queue/\n\n{EXITS}")
def drill(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="NAME… [SUBJECT]", help="None: the faults are listed.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Each fault, and the usual compositions.")] = False,
    random: Annotated[int | None, typer.Option(help="Compose faults from this seed.", metavar="SEED")] = None,
    lasts: Annotated[str, typer.Option("--for", help="How long, with --random.", metavar="TIME")] = "10m",
    budget: Annotated[
        str, typer.Option(help="The backlog has to be normal again so long after.", metavar="TIME")
    ] = "60s",
    hold: Annotated[str | None, typer.Option(help="Keep the faults up so long.", metavar="TIME")] = None,
    arrival: Annotated[str, typer.Option(help="Jobs that arrive meanwhile.", metavar="RATE")] = "6/s",
    workers: Annotated[int, typer.Option(min=1, max=64, help="How many workers.")] = 3,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="Stop at the first failure.")] = False,
    known: Annotated[Path | None, typer.Option(help="Findings that are accepted, as TOML.", metavar="FILE")] = None,
    server: Server = "embedded",
    pg: Pg = None,
    seed: Seed = None,
    allow_existing: AllowExisting = False,
    runs: Runs = Path(),
    as_json: Json = False,
) -> int:
    """Inject faults into a working queue, told live, and judge loss, duplication and recovery."""
    from harness.capacity.quantities import parse_duration, parse_rate
    from harness.faults import discover as discover_faults
    from harness.postgres.options import parse_server
    from harness.run import keep as kept
    from harness.run.drill import DrillOptions, Listener, names_and_subject, run_drills
    from reports import as_text, discover

    names, subject = names_and_subject(words or [])
    if not names and not every and random is None:
        for name, told in discover_faults().items():
            print(f"  {name:42} {told.docstring.splitlines()[0]}")
        return HELD
    if sum((bool(names), every, random is not None)) > 1:
        raise BadInput("NAME, --all and --random: choose one of them")
    option = parse_server(server, pg)
    number = random if random is not None else seed if seed is not None else kept.new_seed()
    loaded = _subject(subject)
    options = DrillOptions(
        subject=loaded,
        subject_argument=str(subject) if subject is not None else None,
        server=option,
        folder=kept.new_run(runs, number),
        command=_command_line(),
        seed=number,
        names=names,
        every=every,
        lasts_seconds=float(parse_duration(lasts, "--for")) if random is not None else None,
        hold_seconds=float(parse_duration(hold, "--hold", zero=True)) if hold is not None else None,
        budget_seconds=float(parse_duration(budget, "--budget")),
        jobs_per_second=float(parse_rate(arrival, "--arrival")),
        workers=workers,
        fail_fast=fail_fast,
        allow_existing=allow_existing,
        known=_known(known) | _known_of(loaded),
    )
    listener = Listener(
        doing=lambda what: _say(f"  {what} ..."),
        moment=lambda told: _say(f"  {told}"),
        played=lambda play: _say(as_text.line(play, width=_width())),
    )
    document = _run(run_drills(options, listener))
    for face in discover().values():
        kept.write(options.folder, face.FILENAME, face.render(document))
    if as_json:
        sys.stdout.buffer.write(discover()["json"].render(document))
    else:
        sys.stdout.buffer.write(as_text.render(document, colour=sys.stdout.isatty(), width=_width()))
    sys.stdout.flush()
    _say(f"reports are in {options.folder}/")
    return EXIT_OF[Verdict(document.verdict)]


@app.command(epilog=f"Example: queueproof explore my-queue/ --jobs 2 --budget 30s\n\n{EXITS}")
def explore(
    subject: SubjectArgument = None,
    workers: Annotated[int | None, typer.Option(min=1, max=9, help="Workers of one case.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, max=9, help="Jobs of that case.")] = None,
    expiries: Annotated[int | None, typer.Option(min=0, max=9, help="How often a lease may end in it.")] = None,
    kills: Annotated[int | None, typer.Option(min=0, max=9, help="How many workers may be killed in it.")] = None,
    severs: Annotated[int | None, typer.Option(min=0, max=9, help="How many replies may be lost in it.")] = None,
    polls: Annotated[int | None, typer.Option(min=0, max=9, help="Looks per worker that bring nothing.")] = None,
    budget: Annotated[str, typer.Option(help="How long to explore, such as 60s.", metavar="TIME")] = "60s",
    replay: Annotated[str, typer.Option(help="Run one schedule, such as w1w2w1w2.", metavar="SCHEDULE")] = "",
    spec: Annotated[
        Path | None, typer.Option(help="Write a counterexample for isolationtester.", metavar="FILE")
    ] = None,
    server: Server = "embedded",
    pg: Pg = None,
    seed: Seed = None,
    allow_existing: AllowExisting = False,
    runs: Runs = Path(),
    as_json: Json = False,
) -> int:
    """Run every order of a small case on real PostgreSQL, and show the one that breaks it."""
    import json

    from harness.explore.face import as_data, as_text
    from harness.explore.run import options_of, run_exploration
    from harness.postgres.options import parse_server
    from harness.run import keep as kept

    number = seed if seed is not None else kept.new_seed()
    asked = {
        "workers": workers, "jobs": jobs, "expiries": expiries, "kills": kills, "severs": severs, "polls": polls
    }  # fmt: skip
    options = options_of(asked, budget, replay, number)
    option = parse_server(server, pg)
    loaded = _subject(subject)
    folder = kept.new_run(runs, number)
    argument = str(subject) if subject is not None else None
    report = _run(run_exploration(loaded, argument, option, folder, options, _say, allow_existing=allow_existing))
    print(json.dumps(as_data(report), indent=2, ensure_ascii=False) if as_json else as_text(report))
    if spec is not None:
        _write_spec(spec, report.counterexample)
    return EXIT_OF[report.verdict]


def _write_spec(file: Path, found: Any) -> None:
    if found is None or not found.spec:
        _say(f"{file} was not written: {found.why_no_spec if found is not None else 'there is no counterexample'}")
        return
    try:
        file.write_text(found.spec, encoding="utf-8")
    except OSError as error:
        raise EnvironmentFailed(f"cannot write {file}: {error.strerror}") from error
    _say(f"wrote {file}; run it with isolationtester's connection string as its argument")


@app.command(epilog=f"Example: queueproof probe my-queue/\n\n{EXITS}")
def probe(
    subject: SubjectArgument = None,
    server: Server = "embedded",
    pg: Pg = None,
    seed: Seed = None,
    allow_existing: AllowExisting = False,
    runs: Runs = Path(),
    as_json: Json = False,
) -> int:
    """One calm job: what was seen, which points and scenarios apply, and why the rest do not."""
    import json

    from harness.postgres.options import parse_server
    from harness.run import keep as kept
    from harness.run.gate import run_probe
    from scenarios import discover as discover_scenarios

    option = parse_server(server, pg)
    loaded = _subject(subject)
    number = seed if seed is not None else kept.new_seed()
    folder = kept.new_run(runs, number)
    _say(f"  probing {loaded.name} on {option.shown()} ...")
    probed, version, source = _run(run_probe(loaded, option, folder, number, allow_existing=allow_existing))
    applies: dict[str, str] = {}
    for name, scenario in discover_scenarios().items():
        reasons = [why for need in scenario.needs if (why := need.missing(loaded, probed.learned))]
        applies[name] = reasons[0] if reasons else "yes"
    learned = {change: list(found) for change, found in sorted(probed.book.learned().items())}
    stops = {point.value: told for point, told in probed.stops_at.items()}
    if as_json:
        result = {
            "subject": loaded.name,
            "server": f"{version} ({source})",
            "changes": sorted(probed.learned),
            "statements": learned,
            "points": stops,
            "scenarios": applies,
        }
        print(json.dumps(result, indent=2))
        return HELD
    print(f"{loaded.name}, on PostgreSQL {version} ({source})\n")
    print("What its statements were seen to do:")
    for change, statements in learned.items():
        for statement in statements:
            print(f"  {change:9} {_cut(statement, 140)}")
    print("\nWhere a worker can be stopped:")
    for point, told in stops.items():
        print(f"  {point:12} {told}")
    print("\nWhich scenarios apply:")
    for name, told in applies.items():
        print(f"  {name:56} {told}")
    return HELD


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


@app.command()
def check(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run's folder, or a file in it.")],
    as_json: Json = False,
) -> int:
    """Judge a stored history again, without a server."""
    import json

    from harness.run.judge import judge_history
    from harness.run.keep import HISTORY, find_run

    folder = find_run(run)
    truncated: list[str] = []
    judged = {
        name: each
        for name, each in judge_history(folder / HISTORY, truncated=truncated.append).items()
        if each.scenario != "probe"
    }
    if not judged:
        raise BadInput(f"RUN: {folder / HISTORY} holds no play that could be judged")
    verdict = Verdict.worst(each.verdict for each in judged.values())
    if as_json:
        rows = [
            {
                "play": name,
                "verdict": each.verdict.value,
                "reason": each.reason,
                "findings": [{"invariant": f.invariant, "sentence": f.sentence} for f in each.findings],
                "missing": list(each.missing),
            }
            for name, each in judged.items()
        ]
        print(json.dumps({"verdict": verdict.value, "plays": rows}, indent=2))
    else:
        for name, each in judged.items():
            print(f"{each.verdict.value:14} {name}: {each.reason}")
        print(f"{verdict.value}: {len(judged)} plays judged from {folder / HISTORY}")
    for told in truncated:
        _say(told)
    return EXIT_OF[verdict]


@app.command()
def report(
    run: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Runs of one subject, such as a gate and a load.")
    ],
    face: Annotated[str, typer.Option("--as", help="html, json, junit, markdown or text.", metavar="FACE")] = "text",
    output: Annotated[Path | None, typer.Option(help="Write to this file.", metavar="FILE")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --as json.")] = False,
) -> int:
    """Render a run's document in another face; a gate and a load run together make one acceptance report."""
    from harness.run.merging import merged, read_document
    from reports import discover

    faces = discover()
    face = "json" if as_json else face
    if face not in faces:
        raise BadInput(f"--as {face!r}: not a face; there are {', '.join(faces)}")
    content = faces[face].render(merged([read_document(each) for each in run]))
    if output is None:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    else:
        try:
            output.write_bytes(content)
        except OSError as error:
            raise EnvironmentFailed(f"cannot write {output}: {error.strerror}") from error
        _say(f"wrote {output}")
    return HELD


def _word(help_: str, metavar: str) -> Any:
    return typer.Option(help=help_, metavar=metavar)


@app.command(epilog=f"Example: queueproof size --arrival 12/s --service 0.8s --busy 0.6 --outage 300s\n\n{EXITS}")
def size(
    arrival: Annotated[str, _word("Jobs that arrive, such as 12/s, 12/min or 12/h.", "RATE")],
    service: Annotated[str, _word("How long a job holds its slot, such as 0.8s.", "TIME")],
    busy: Annotated[str, _word("Share of the time that a slot may be busy.", "SHARE")] = "0.6",
    outage: Annotated[str | None, _word("How long nothing works.", "TIME")] = None,
    slots: Annotated[str | None, _word("Slots that are there already; else the busy ratio says.", "N")] = None,
    rto: Annotated[str | None, _word("Current again so long after recovery.", "TIME")] = None,
    retry: Annotated[str | None, _word("Share of attempts that fail, such as 10%.", "SHARE")] = None,
    max_attempts: Annotated[str | None, _word("Attempts that a job gets.", "N")] = None,
    failure: Annotated[str | None, _word("How long a failed attempt holds its slot.", "TIME")] = None,
    slow: Annotated[str | None, _word("A slow class of jobs, such as 5%:8s.", "SHARE:TIME")] = None,
    limit: Annotated[str | None, _word("What the interface behind allows.", "RATE")] = None,
    calls: Annotated[str | None, _word("Calls to it that an attempt makes.", "N")] = None,
    burst: Annotated[str | None, _word("Calls that it saves up while nothing works.", "N")] = None,
    overhead: Annotated[str | None, _word("The database's share of an attempt.", "TIME")] = None,
    database: Annotated[str | None, _word("Claims with completions that the database sustains.", "RATE")] = None,
    inflow: Annotated[str | None, _word("Arrivals after recovery, such as 12/s:150s,18/s.", "STEPS")] = None,
    batch: Annotated[str | None, _word("Jobs that a serial worker claims at once.", "N")] = None,
    lease: Annotated[str | None, _word("The lease, to see what outlives it unrenewed.", "TIME")] = None,
    heartbeat: Annotated[str | None, _word("How often leases are renewed.", "TIME")] = None,
    age: Annotated[str | None, _word("The oldest age that is still acceptable.", "TIME")] = None,
    arrival_cv2: Annotated[str | None, _word("Spread of arrivals: 1 Poisson, 0 even.", "NUMBER")] = None,
    service_cv2: Annotated[str | None, _word("Spread of service times: 1 exponential, 0 fixed.", "NUMBER")] = None,
    as_json: Json = False,
) -> int:
    """Slots, backlog, drain time and its band, from theory alone: each number beside what it means."""
    given = {name: value for name, value in locals().items() if name != "as_json"}
    import json

    from harness.capacity.question import SizeQuestion
    from harness.capacity.sizing import size as answer_size
    from harness.capacity.telling import tell

    answer = answer_size(SizeQuestion.from_text(**given))
    if as_json:
        print(json.dumps(answer.as_dict(), indent=2))
    else:
        sys.stdout.write(tell(answer, _width()))
    held = answer.drains is not False and answer.meets_recovery is not False
    return HELD if held else BROKEN


@app.command(
    epilog="Example: queueproof load my-queue/ --arrival 12/s --service 0.8s --slots 16 --outage 300s --time-scale 10"
    f"\n\n{EXITS}"
)
def load(
    subject: SubjectArgument = None,
    *,
    arrival: Annotated[str, _word("Jobs that arrive, such as 12/s; of a ramp its last rate.", "RATE")],
    service: Annotated[str, _word("How long a call takes on average, such as 0.8s.", "TIME")],
    slots: Annotated[str, _word("Jobs that may run at the same time.", "N")],
    outage: Annotated[str, _word("How long nothing works.", "TIME")],
    outage_of: Annotated[str, _word("workers (killed), sink (down) or database (stopped).", "WHAT")] = "workers",
    time_scale: Annotated[str, _word("Compress time by this factor, 1 to 100.", "N")] = "1",
    workers: Annotated[str, _word("Worker processes, or external:N on other machines.", "N")] = "1",
    arrivals: Annotated[str, _word("poisson, even, ramp:FROM:TO:TIME or trace:FILE.", "KIND")] = "poisson",
    shape: Annotated[str, _word("Of service times: exponential, fixed or lognormal:CV2.", "SHAPE")] = "exponential",
    slow: Annotated[str | None, _word("A slow class of jobs, such as 5%:8s.", "SHARE:TIME")] = None,
    retry: Annotated[str | None, _word("Share of calls that fail, such as 10%.", "SHARE")] = None,
    limit: Annotated[str | None, _word("Calls that the sink lets through.", "RATE")] = None,
    burst: Annotated[str | None, _word("Calls that the limit saves up.", "N")] = None,
    steady: Annotated[str | None, _word("How long the steady phase lasts.", "TIME")] = None,
    rto: Annotated[str | None, _word("Must be current again so long after recovery.", "TIME")] = None,
    age: Annotated[str | None, _word("The oldest age that is acceptable.", "TIME")] = None,
    at_most: Annotated[str | None, _word("The longest that the run may take.", "TIME")] = None,
    batch: Annotated[str | None, _word("Jobs that a worker claims at once.", "N")] = None,
    prefetch: Annotated[str | None, _word("Jobs that a worker claims ahead.", "N")] = None,
    lease: Annotated[str | None, _word("The workers' lease; 30s if not said.", "TIME")] = None,
    heartbeat: Annotated[str | None, _word("A fifth of the lease if not said.", "TIME")] = None,
    poll: Annotated[str | None, _word("How often idle workers look; 1s if not said.", "TIME")] = None,
    backoff: Annotated[str | None, _word("Before the second attempt; 1s if not said.", "TIME")] = None,
    backoff_cap: Annotated[str | None, _word("The longest wait between attempts.", "TIME")] = None,
    stuck_head: Annotated[str | None, _word("Make the first job failing or locked: must fail.", "HOW")] = None,
    worker_env: Annotated[list[str] | None, _word("NAME=VALUE for the workers; may be repeated.", "PAIR")] = None,
    sweep: Annotated[list[str] | None, _word("Compare settings: batch=1,5,10 or slots=8,16.", "NAME=…")] = None,
    front: Annotated[
        str, _word("Who produces: own, locust, locust:PROCESSES, locust-web or locust-master:WORKERS.", "WHO")
    ] = "own",
    sink_host: Annotated[str, _word("Where the sink listens; loopback if not said.", "ADDRESS")] = "127.0.0.1",
    sink_port: Annotated[int, typer.Option(min=0, max=65535, help="The sink's port; 0: a free one.")] = 0,
    host_metrics: Annotated[str | None, _word("The database host's node exporter.", "URL")] = None,
    durable: Annotated[
        bool, typer.Option(help="Flush to disk, as in production. Without, nothing is said of disks.")
    ] = True,
    server: Server = "embedded",
    pg: Pg = None,
    seed: Seed = None,
    allow_existing: AllowExisting = False,
    runs: Runs = Path(),
    as_json: Json = False,
) -> int:
    """Load a queue until steady, make an outage, and measure how long until it is current again, inflow going on."""
    given = {name: value for name, value in locals().items() if value is None or isinstance(value, str)}
    from harness.load.command import Asked, carry_out
    from harness.postgres.options import parse_server
    from harness.run import keep as kept
    from reports import as_text, discover

    number = seed if seed is not None else kept.new_seed()
    asked = Asked(
        given, worker_env or [], sweep or [], front, sink_host, sink_port, host_metrics, durable, allow_existing,
        _subject(subject), parse_server(server, pg), number, _command_line(),
    )  # fmt: skip
    asked.check()
    folder = kept.new_run(runs, number)
    document = _run(carry_out(asked, folder, _say))
    for face in discover().values():
        kept.write(folder, face.FILENAME, face.render(document))
    if as_json:
        sys.stdout.buffer.write(discover()["json"].render(document))
    else:
        sys.stdout.buffer.write(as_text.render(document, colour=sys.stdout.isatty(), width=_width()))
    sys.stdout.flush()
    _say(f"reports are in {folder}/")
    return EXIT_OF[Verdict(document.verdict)]


@app.command(epilog=f"Example: queueproof quote offers.toml --size .queueproof/runs/latest --gate GATE_RUN\n\n{EXITS}")
def quote(
    quotes: Annotated[Path, typer.Argument(metavar="QUOTES.toml", help="The offers.")],
    size_run: Annotated[
        Path, typer.Option("--size", help="The load run whose thresholds they are held to.", metavar="RUN")
    ],
    gate_run: Annotated[
        Path | None, typer.Option("--gate", help="A passing gate of the same subject.", metavar="RUN")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="A folder for quotes.csv and the report.", metavar="FOLDER")
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print every price as CSV.")] = False,
    as_json: Json = False,
) -> int:
    """Price several offers at equal thresholds: exit code 1 when none has shown that it meets them all."""
    from harness.load.quoting import quote as price_offers
    from harness.run import keep as kept
    from reports import as_text, discover

    quoted = price_offers(quotes, size_run, gate_run)
    if output is not None:
        try:
            output.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EnvironmentFailed(f"cannot make {output}: {error.strerror}") from error
        kept.write(output, "quotes.csv", quoted.csv)
        for face in discover().values():
            kept.write(output, face.FILENAME, face.render(quoted.document))
        _say(f"quotes.csv and reports are in {output}/")
    if as_csv:
        sys.stdout.buffer.write(quoted.csv)
    elif as_json:
        sys.stdout.buffer.write(discover()["json"].render(quoted.document))
    else:
        sys.stdout.buffer.write(as_text.tables(quoted.document))
    sys.stdout.flush()
    return HELD if quoted.any_meets else BROKEN


@app.command(name="list")
def list_(
    requirements: Annotated[bool, typer.Option("--requirements", help="Each requirement, and what proves it.")] = False,
    as_json: Json = False,
) -> int:
    """List scenarios and invariants, or requirements with what proves them."""
    import json

    from harness.invariants import discover as discover_invariants
    from harness.run.requirements import proofs, titles
    from scenarios import discover as discover_scenarios

    scenarios = discover_scenarios()
    if requirements:
        proven = proofs(scenarios.values())
        if as_json:
            print(json.dumps({n: {"title": titles()[n], "proven_by": list(p)} for n, p in proven.items()}, indent=2))
            return HELD
        for name, given in proven.items():
            print(f"{name:4} {titles()[name]}")
            print(f"     {', '.join(given) if given else 'nothing yet'}")
        return HELD
    invariants = discover_invariants()
    if as_json:
        listing = {
            "scenarios": [
                {"name": s.name, "serves": s.serves, "first": _first(s.docstring)} for s in scenarios.values()
            ],
            "invariants": [{"name": i.name, "serves": i.serves, "title": i.title} for i in invariants],
        }
        print(json.dumps(listing, indent=2))
        return HELD
    print("Scenarios")
    for scenario in scenarios.values():
        print(f"  {scenario.name:56} {_first(scenario.docstring)}")
    print("\nInvariants")
    for invariant in invariants:
        print(f"  {invariant.name:28} {invariant.title}")
    return HELD


def _first(docstring: str) -> str:
    return docstring.splitlines()[0]


@app.command()
def explain(
    name: Annotated[str, typer.Argument(help="A scenario, an invariant, or a requirement's id.")],
    as_json: Json = False,
) -> int:
    """Tell what a scenario does, what an invariant judges, or what proves a requirement."""
    import inspect
    import json

    from harness.invariants import discover as discover_invariants
    from harness.run.requirements import proofs, titles
    from scenarios import discover as discover_scenarios

    scenarios = discover_scenarios()
    invariants = {invariant.name: invariant for invariant in discover_invariants()}
    told: dict[str, Any]
    if name in scenarios:
        scenario = scenarios[name]
        told = {
            "scenario": name,
            "story": inspect.cleandoc(scenario.docstring),
            "serves": scenario.serves,
            "must_happen": [fact.sentence for fact in scenario.must_happen],
            "must_hold": {invariant.name: invariant.title for invariant in scenario.must_hold},
        }
        text = [f"{name}\n\n{told['story']}\n", f"It serves {', '.join(scenario.serves)}."]
        text += ["What must have happened, or it is inconclusive:", *(f"  {fact}" for fact in told["must_happen"])]
        text += ["What must hold:", *(f"  {judge}: {title}" for judge, title in told["must_hold"].items())]
    elif name in invariants:
        invariant = invariants[name]
        told = {
            "invariant": name,
            "judges": inspect.getdoc(invariant.judge) or invariant.title,
            "serves": invariant.serves,
            "broken_queue": invariant.broken_queue,
        }
        text = [f"{name}\n\n{told['judges']}\n"]
        text += [f"It serves {', '.join(invariant.serves)}. It must catch the broken queue {invariant.broken_queue}."]
    elif name in titles():
        told = {"requirement": name, "title": titles()[name], "proven_by": proofs(scenarios.values())[name]}
        text = [f"{name}: {told['title']}\n", *(f"  {proof}" for proof in told["proven_by"] or ("nothing yet",))]
    else:
        near = _near(name, [*scenarios, *invariants, *titles()])
        raise BadInput(f"NAME {name!r}: no scenario, invariant or requirement{near}")
    print(json.dumps(told, indent=2) if as_json else "\n".join(text))
    return HELD


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Made when it does not exist.")],
    kind: Annotated[str, typer.Option(help="sql, python or shell.")] = "sql",
    as_json: Json = False,
) -> int:
    """Write a starter: a subject that works, to be changed into yours."""
    import json

    from harness.run.starters import write_starter

    written = [str(path) for path in write_starter(kind, folder)]
    print(json.dumps(written, indent=2) if as_json else "\n".join(written))
    _say(f"now try: queueproof gate {shlex.quote(str(folder))}")
    return HELD


@app.command()
def doctor(
    clean: Annotated[
        str | None, typer.Option(help="Remove what a killed run left in this database.", metavar="DSN")
    ] = None,
    server: Server = "embedded",
    pg: Pg = None,
    as_json: Json = False,
) -> int:
    """Check that this machine can run a gate, and say what is missing."""
    import json

    from harness.postgres.options import parse_server
    from harness.run.doctor import clean_up, examine

    if clean is not None:
        done = _run(clean_up(clean))
        print(json.dumps(done, indent=2) if as_json else "\n".join(done))
        return HELD
    found = _run(examine(parse_server(server, pg)))
    if as_json:
        print(json.dumps([{"what": f.what, "fine": f.fine, "told": f.told} for f in found], indent=2))
    else:
        for finding in found:
            print(f"{'ok' if finding.fine else 'missing':8} {finding.what}: {finding.told}")
    return HELD if all(finding.fine for finding in found) else FAILED


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="Left out, the names are listed.")] = "",
    as_json: Json = False,
) -> int:
    """Measure ratios in one run; these are figures, not tests."""
    import json

    from harness.bench import discover as discover_benches

    benches = discover_benches()
    if name not in benches:
        if name:
            raise BadInput(f"NAME {name!r}: no such benchmark; there are {', '.join(benches)}")
        titles = {each: told.title for each, told in benches.items()}
        print(json.dumps(titles, indent=2) if as_json else "\n".join(f"  {k:10} {v}" for k, v in titles.items()))
        return HELD
    _answer_signals(signal.default_int_handler)
    result = benches[name].measure()
    if as_json:
        print(json.dumps(result, indent=2))
    else:
        print(benches[name].as_text(result))
    return HELD
