"""One file per report face, found by its name: ``as_<name>.py``. Each is a pure function of one document.

The same document gives the same bytes: a face reads no clock, no environment, no terminal and no file but its template.
"""

import importlib
import pkgutil
from typing import Protocol, cast

from harness.document import Document


class Face(Protocol):
    """What each ``as_*.py`` has. ``render`` may take keyword arguments of its own as long as each has a default."""

    NAME: str  # what ``--as`` takes
    SUFFIX: str  # of a file, with the dot
    FILENAME: str  # in a run's folder

    def render(self, document: Document) -> bytes:
        """The whole report."""
        ...


def discover() -> dict[str, Face]:
    """Every face by name, in the order of names."""
    found: dict[str, Face] = {}
    for module in pkgutil.iter_modules(__path__):
        if not module.name.startswith("as_"):
            continue
        face = importlib.import_module(f"{__name__}.{module.name}")
        lacks = [word for word in ("NAME", "SUFFIX", "FILENAME", "render") if not hasattr(face, word)]
        if lacks:
            raise TypeError(f"report face {module.name}: it lacks {', '.join(lacks)}")
        found[face.NAME] = cast("Face", face)
    return dict(sorted(found.items()))
