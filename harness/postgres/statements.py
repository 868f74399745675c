"""Reads our SQL files: one statement each, filled with identifiers and expressions, never with values."""

from functools import cache
from importlib.resources import files
from typing import LiteralString


@cache
def _text(name: str) -> str:
    return files("harness.postgres").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


def statement(name: str, **parts: str) -> LiteralString:
    """The statement of that file. ``parts`` replace ``{name}`` marks: identifiers and a subject's own expressions.

    The result is called literal because it comes from the product's files and the subject's declaration, as trusted as code.
    """
    text = _text(name)
    for mark, part in parts.items():
        text = text.replace("{" + mark + "}", part)
    return text
