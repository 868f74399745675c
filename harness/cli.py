"""The command line: the composition root. Every way out of it is an exit code, and no traceback reaches a user.

Standard output is the result, standard error is progress.
"""

import io
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from harness.commands.ending import EXITS, FAILED, HELD, INTERRUPTED, USAGE, answer_signals, say
from harness.contracts.problem import Problem

# In the order in which a newcomer needs them.
COMMANDS = (
    "gate", "drill", "explore", "probe", "check", "report", "size", "load", "quote", "list", "explain", "init", "doctor", "bench",
)  # fmt: skip

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


@app.callback()
def everything(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version, and nothing else.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """What stands before any command."""


for _name in COMMANDS:
    _module = import_module(f"harness.commands.{_name}")
    _example = getattr(_module, "EXAMPLE", "")
    app.command(name=_name, epilog=f"Example: {_example}\n\n{EXITS}" if _example else None)(_module.command)


def main() -> NoReturn:
    """Maps every way out to an exit code."""
    if sys.stdout is None:  # it was closed before we began
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  for as long as we live
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a sign is shown another
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(_main())
    finally:
        _let_go_of(sys.stdout)
        answer_signals(signal.SIG_DFL)  # all is done and told: the interpreter's own end is nothing to interrupt


def _main() -> int:
    try:
        if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # else the way in answers them, until work begins
            answer_signals(signal.default_int_handler)
        code = app(standalone_mode=False)
        if code == INTERRUPTED:  # typer turns Ctrl-C into this
            raise KeyboardInterrupt
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        say("interrupted; everything that was started has been ended")
        return INTERRUPTED
    except typer.Exit as done:
        return done.exit_code
    except (BrokenPipeError, SystemExit):  # typer makes the one into the other, with the code of a broken queue
        return FAILED  # whoever read the result has gone; there is nobody to tell
    except Problem as problem:
        for line in str(problem).splitlines():
            say(line)
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
        say(error.format_message() if "\n" in error.format_message() else _usage(error.format_message(), command))
        return USAGE
    if os.environ.get("QUEUEPROOF_TRACEBACK"):
        raise error
    say(
        f"the harness itself failed: {type(error).__name__}: {error}; this says nothing about the queue."
        " Set QUEUEPROOF_TRACEBACK=1 to see where, and report it"
    )
    return FAILED


def _usage(sentence: str, command: str) -> str:
    return f"{sentence.rstrip('.')}; see: {command} --help"


if __name__ == "__main__":
    main()
