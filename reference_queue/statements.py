"""The SQL of the protocol: one statement per file, from ``sql/`` or from folders that ``REFERENCE_QUEUE_SQL`` lays over it."""

import os
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

BATCH = "limit 1 /* batch */"


class MissingStatement(LookupError):
    """A statement's file is nowhere: the message says where it was looked for."""


class Statements:
    """Texts by name. With overlays, the first folder that has the file wins; the package's own file comes last."""

    def __init__(self, overlays: Sequence[Path] = ()) -> None:
        self._overlays = tuple(overlays)
        self._texts: dict[tuple[str, int | None], str] = {}

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Statements":
        """Overlays as the environment names them; a folder may hold the files itself or in a folder ``sql``."""
        named = environment.get("REFERENCE_QUEUE_SQL", "").split(os.pathsep)
        folders = [Path(name) for name in named if name]
        return cls([place for folder in folders for place in (folder, folder / "sql")])

    def text(self, name: str, batch: int | None = None) -> str:
        """The statement ``name``. ``batch`` is written into the text: as a bind parameter it would be planned on every call."""
        found = self._texts.get((name, batch))
        if found is None:
            found = self._read(name)
            if batch is not None:
                found = found.replace(BATCH, f"limit {int(batch)}")
            self._texts[(name, batch)] = found
        return found

    def is_replaced(self, name: str) -> bool:
        """Whether an overlay has a statement of its own for this."""
        return self._overlay(name) is not None

    def _read(self, name: str) -> str:
        file = self._overlay(name)
        return packaged(name) if file is None else file.read_text(encoding="utf-8")

    def _overlay(self, name: str) -> Path | None:
        files = (folder / f"{name}.sql" for folder in self._overlays)
        return next((file for file in files if file.is_file()), None)


@cache
def packaged(name: str) -> str:
    """The package's own statement."""
    file = resources.files(__package__).joinpath("sql", *f"{name}.sql".split("/"))
    if not file.is_file():
        raise MissingStatement(f"there is no statement {name}.sql in {resources.files(__package__)}/sql")
    return file.read_text(encoding="utf-8")


def schema() -> list[tuple[str, str]]:
    """The statements of a fresh install, in order: (file name, text)."""
    folder = resources.files(__package__).joinpath("sql", "schema")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [(file.name, file.read_text(encoding="utf-8")) for file in files]
