"""For programs: the document itself, as its published schema (``schema/document.schema.json``) describes it.

To write the schema anew after the document has changed: ``python -m reports.as_json > reports/schema/document.schema.json``.
"""

import math
import sys
from typing import Any

import msgspec

from harness.document import Document

NAME = "json"
SUFFIX = ".json"
FILENAME = "report.json"


def render(document: Document) -> bytes:
    """The whole document: keys sorted, defaults left out, two spaces of indentation."""
    plain = _portable(msgspec.to_builtins(document))
    return msgspec.json.format(msgspec.json.encode(plain, order="sorted"), indent=2) + b"\n"


def schema() -> bytes:
    """The JSON schema of what ``render`` gives."""
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "One run of queueproof",
        **msgspec.json.schema(Document),
    }
    return msgspec.json.format(msgspec.json.encode(whole, order="sorted"), indent=2) + b"\n"


def _portable(value: Any) -> Any:
    """What JSON has no way to say: a lone surrogate (a worker's undecodable byte) and a number that is not finite."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {_portable(key): _portable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_portable(item) for item in value]
    return value


if __name__ == "__main__":
    sys.stdout.buffer.write(schema())
