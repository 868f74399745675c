"""Fills ``{lease}`` and its kind into a subject's commands and environment, so that a scenario can run it with other values.

``${name}`` is a shell's business and stays; ``{{name}}`` is a literal ``{name}``.
"""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from harness.contracts.problem import BadInput
from harness.contracts.subject import Subject, plain

NAMES = ("python", "folder", "base", "layers", "lease", "heartbeat", "poll", "max_attempts", "slots")

_PLACEHOLDER = re.compile(r"(?<!\$)\{(\{[a-z_]+\}|[a-z_]+)\}")

Value = str | float | Path | None


def fill(subject: Subject, template: str, **overrides: Value) -> str:
    """The template with its placeholders replaced; an override replaces the subject's own value (seconds for durations)."""
    values: dict[str, Value] = {
        "python": interpreter(subject),
        "folder": subject.folder,
        "base": subject.layers[0],  # the bottom of extends: where an overlay finds what it does not replace
        "layers": os.pathsep.join(str(layer) for layer in reversed(subject.layers)),
        "lease": subject.lease_seconds,
        "heartbeat": subject.heartbeat_seconds,
        "poll": subject.poll_seconds,
        "max_attempts": subject.max_attempts,
        "slots": 1,
        **overrides,
    }

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("{"):
            return name
        if name not in values:
            raise BadInput(f"{template[:80]!r} uses {{{name}}}, which is none of {', '.join(NAMES)}")
        value = values[name]
        if value is None:
            raise BadInput(f"{template[:80]!r} uses {{{name}}}, but subject.{name} is not given")
        return plain(value) if isinstance(value, int | float) else str(value)

    return _PLACEHOLDER.sub(replace, template)


def names_in(template: str) -> Iterable[str]:
    """The placeholders that a template uses."""
    return (match for match in _PLACEHOLDER.findall(template) if not match.startswith("{"))


def escape(text: str) -> str:
    """A template that ``fill`` turns back into exactly this text."""
    return _PLACEHOLDER.sub(lambda match: "{" + match[0] + "}", text)


def interpreter(subject: Subject) -> str:
    """The Python of the subject's own environment: a ``.venv`` in one of its folders, or else the one that runs us."""
    for layer in reversed(subject.layers):
        own = layer / ".venv" / "bin" / "python"
        if own.exists():
            return str(own)
    return sys.executable
