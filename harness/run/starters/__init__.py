"""First subjects for ``queueproof init``: folders that work as they are, to be changed into the user's own."""

import shutil
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from harness.contracts.problem import BadInput, EnvironmentFailed

KINDS: Sequence[str] = ("sql", "python", "shell")


def write_starter(kind: str, folder: Path) -> tuple[Path, ...]:
    """Write the files of a first subject into ``folder``; returns what was written. Overwrites nothing."""
    if kind not in KINDS:
        raise BadInput(f"{kind!r} is not one of {', '.join(KINDS)}")
    with as_file(files(__name__) / kind) as template:
        names = sorted(path.name for path in template.iterdir() if path.is_file())
        try:
            if folder.exists() and not folder.is_dir():
                raise BadInput(f"{folder}: is a file; name a folder, new or without {', '.join(names)}")
            present = [name for name in names if (folder / name).exists()]
            if present:
                raise BadInput(
                    *(
                        f"{folder / name}: exists already, and init overwrites nothing; name another folder"
                        for name in present
                    )
                )
            folder.mkdir(parents=True, exist_ok=True)
            return tuple(Path(shutil.copyfile(template / name, folder / name)) for name in names)
        except OSError as error:
            raise EnvironmentFailed(
                f"cannot write {folder}: {error.strerror}; name a folder you may write to"
            ) from error
