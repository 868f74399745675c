"""Which server to use, as the command line says it: ``--server`` and ``--pg``."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from harness.contracts.problem import BadInput

EMBEDDED_VERSIONS = (16, 17, 18)
DEFAULT_VERSION = 18
ALLOWED = "embedded, local, local:BINDIR, docker, docker:IMAGE or postgresql://user@host:port/database"


@dataclass(frozen=True)
class ServerOption:
    """A server to start (``embedded``, ``local`` or ``docker``), or one that somebody else runs (``dsn``)."""

    kind: str
    major: int | None = None  # of binaries to find; None: the newest
    bin_dir: Path | None = None
    dsn: str | None = field(default=None, repr=False)
    image: str | None = None  # of a container

    def shown(self) -> str:
        """As typed, without a password."""
        if self.dsn is not None:
            return without_password(self.dsn)
        if self.image is not None:
            return f"{self.kind}:{self.image}"
        return self.kind if self.bin_dir is None else f"{self.kind}:{self.bin_dir}"


def parse_server(text: str, pg: str | int | None = None) -> ServerOption:
    """Read ``--server`` and ``--pg``; BadInput names each mistake and what is allowed."""
    major, mistakes = _major(pg)
    kind, _, rest = text.partition(":")
    option = ServerOption("embedded", major or DEFAULT_VERSION)
    if _looks_like_dsn(text):
        if pg is not None:
            mistakes.append(f"--pg {pg}: a server that already runs has its version; leave --pg out")
        mistakes += _dsn_mistakes(text)
        option = ServerOption("dsn", dsn=text)
    elif kind == "local":
        if rest and not (Path(rest).expanduser() / "postgres").is_file():
            mistakes.append(f"--server {text}: there is no program 'postgres' in {rest!r}; name its bin directory")
        option = ServerOption("local", major, Path(rest).expanduser().absolute() if rest else None)
    elif kind == "docker":
        option = ServerOption("docker", major, image=rest or f"postgres:{major or DEFAULT_VERSION}")
    elif text != "embedded":
        mistakes.append(f"--server {without_password(text)!r}: not a server; allowed are {ALLOWED}")
    if mistakes:
        raise BadInput(*mistakes)
    return option


def without_password(text: str) -> str:
    """A connection string with its password starred out, however broken it is."""
    text = re.sub(r"(://[^:/?#]*:).*@", r"\1***@", text)
    return re.sub(r"(?i)((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'?|[^\s&]*)", r"\1***", text)


def _looks_like_dsn(text: str) -> bool:
    return text.startswith(("postgresql://", "postgres://")) or bool(re.match(r"\s*\w+\s*=", text))


def _dsn_mistakes(text: str) -> list[str]:
    shown = without_password(text)
    try:
        parameters = conninfo_to_dict(text)
    except psycopg.Error:  # libpq's own sentence may quote a piece of the password
        return [f"--server {shown}: not a connection string; write postgresql://user:password@host:port/database"]
    host, port = str(parameters.get("host") or ""), str(parameters.get("port") or "")
    mistakes = []
    if "," in host:
        mistakes.append(f"--server {shown}: one host, not several; a drill needs to know whom it talks to")
    if host.startswith(("/", "@")):
        mistakes.append(f"--server {shown}: a host that listens on TCP, not a socket; the proxy sits on TCP")
    if port and not (port.isdigit() and 0 < int(port) < 65536) and "," not in host:
        # Not shown: with an unescaped slash in it, it is a piece of the password that libpq takes for the port.
        mistakes.append(
            f"--server {shown}: the port is not a number from 1 to 65535; a password with / @ or # in it must be"
            " percent-encoded"
        )
    return mistakes


def _major(pg: str | int | None) -> tuple[int | None, list[str]]:
    if pg is None:
        return None, []
    if str(pg) in {str(version) for version in EMBEDDED_VERSIONS}:
        return int(pg), []
    allowed = ", ".join(map(str, EMBEDDED_VERSIONS))
    return None, [f"--pg {str(pg)!r}: not a version we can start; allowed are {allowed}"]
