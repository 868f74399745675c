"""One PostgreSQL server of our own: its data folder, its postmaster, and how to start, stop and hurt it."""

import asyncio
import contextlib
import hashlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Literal, Protocol

from harness.contracts.problem import EnvironmentFailed
from harness.postgres.account import Account
from harness.postgres.binaries import Binaries
from harness.postgres.cache import kept
from harness.postgres.clock import ServerClock, forget, forget_dead_since, library

StopMode = Literal["smart", "fast", "immediate"]

HOST = "127.0.0.1"
OWNER = "postgres"
START_SECONDS = 20.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.01
PORT_ATTEMPTS = 8
ARCHIVE_QUESTIONS = 4
STOP_SIGNALS: dict[StopMode, signal.Signals] = {
    "smart": signal.SIGTERM,
    "fast": signal.SIGINT,
    "immediate": signal.SIGQUIT,
}
INITDB = (
    *("-U", OWNER, "--encoding=UTF8", "--locale=C", "--auth=trust", "--no-sync", "--no-instructions"),
    "--wal-segsize=1",  # 15 MB less to copy for each cluster
)
SETTINGS = {
    "listen_addresses": HOST,
    "unix_socket_directories": "",
    "max_connections": "200",
    "max_wal_size": "1GB",  # the usual figures, which initdb scales down with the segment's size
    "min_wal_size": "80MB",
    "jit": "off",  # saves a second on the first odd query, changes no result
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %q%a ",
    "logging_collector": "off",
}
SETTINGS_OF_A_SMALL_DISK = {"max_wal_size": "96MB", "min_wal_size": "32MB"}
SETTINGS_OF_18 = {"io_method": "sync"}  # three processes less to start and stop
CARELESS = {"fsync": "off", "full_page_writes": "off"}  # survives every death but the machine's own


class Guard(Protocol):
    """What a server needs of the watchdog: to be ended, with its folder, when the harness dies."""

    def watch_server(self, data_folder: Path) -> None:
        """Called before the server starts."""

    def forget_server(self, data_folder: Path) -> None:
        """Called when it has stopped."""

    def watch_folder(self, folder: Path) -> None:
        """Called before the folder is filled."""

    def forget_folder(self, folder: Path) -> None:
        """Called when it is removed."""

    def watch_container(self, name: str) -> None:
        """Called before the container is made."""

    def forget_container(self, name: str) -> None:
        """Called when it is removed."""


class Server:
    """A postmaster, our own child. Not tied to an event loop: any loop may drive it, one at a time."""

    def __init__(self, binaries: Binaries, account: Account, guard: Guard, log: Path) -> None:
        self.binaries = binaries
        self.log = log
        self.port = 0
        self.clock: ServerClock | None = None
        self.disk: Path | None = None  # a small disk of its own, that may be filled
        self._account = account
        self._guard = guard
        self._arguments: tuple[str, ...] = ()
        self._home: Path | None = None
        self._postmaster: subprocess.Popen[bytes] | None = None
        self._going_down = False

    @property
    def data(self) -> Path:
        """The data folder."""
        if self._home is None:
            raise RuntimeError("the server has no data folder yet")
        return self._home / "data"

    @property
    def pid(self) -> int | None:
        """The postmaster's process id while it runs."""
        if self._postmaster is None or self._postmaster.poll() is not None:
            return None
        return self._postmaster.pid

    def prepare(self, *, durable: bool, clock: bool = False, disk_mb: int | None = None) -> None:
        """Lay out a data folder from the cached one. Blocks for a tenth of a second, or two when the cache is empty."""
        seed = initialised(self.binaries, self._account)
        self._home = _folder_for(self._account, self._guard)
        if disk_mb is not None and _mounted(self._home, disk_mb, self._account):
            self.disk = self._home
        copied = self._account.run(["cp", "-Rp", seed / "data", self.data])
        if copied.returncode != 0:
            raise EnvironmentFailed(f"cannot copy a data folder to {self._home}: {copied.stderr.strip()}")
        preloaded = library() if clock else None
        if preloaded is not None:
            # Copied: the server's user may not be able to enter the folder that it was installed in.
            ours = Path(shutil.copy(preloaded, self._home / preloaded.name))
            self.clock = ServerClock(self._home / "clock", ours)
        small = {} if self.disk is None else SETTINGS_OF_A_SMALL_DISK
        settings = (
            SETTINGS | small | ({} if durable else CARELESS) | (SETTINGS_OF_18 if self.binaries.major >= 18 else {})
        )
        with (self.data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())

    async def start(self) -> None:
        """Start, and return when it accepts connections. The port is chosen once and kept from then on."""
        if self._going_down:  # a stop that was cancelled: its postmaster still lives, but not for long
            await self.stop("immediate")
        if self.pid is not None:
            return
        for _ in range(PORT_ATTEMPTS):
            fresh = self.port == 0
            port = self.port or _free_port()
            if await self._start_on(port):
                self.port = port
                return
            if not fresh:
                await asyncio.sleep(0.25)  # our own port, taken while we were down: it may come free again
        raise EnvironmentFailed(f"PostgreSQL could not get a port, {PORT_ATTEMPTS} times; see {self.log}")

    async def start_slowly(self, seconds: float) -> None:
        """Start by way of archive recovery from an archive that has nothing and takes its time to say so."""
        signal_file = self.data / "recovery.signal"
        signal_file.touch()
        if self._account.uid is not None and self._account.gid is not None:
            os.chown(signal_file, self._account.uid, self._account.gid)
        # It asks for the next history file, for the next segment, and for the histories once more.
        self._arguments = (
            "-c",
            "hot_standby=off",
            "-c",
            f"restore_command=sleep {seconds / ARCHIVE_QUESTIONS:.2f}; false",
        )
        began = time.time()
        try:
            await self.start()
        finally:
            self._arguments = ()
            if self.clock is not None:
                forget_dead_since(began)  # the shells that were asked

    async def stop(self, mode: StopMode = "fast") -> None:
        """Stop, and return when its processes are gone. A server that does not obey is stopped harder."""
        process = self._postmaster
        if process is None:
            return
        self._going_down = True
        for attempt in (STOP_SIGNALS[mode], signal.SIGQUIT, signal.SIGKILL):
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.send_signal(attempt)
            deadline = time.monotonic() + STOP_SECONDS
            while process.poll() is None and time.monotonic() < deadline:
                await asyncio.sleep(POLL_SECONDS)
            if process.returncode is not None:
                break
        else:
            raise EnvironmentFailed(f"PostgreSQL (process {process.pid}) survived SIGKILL; see {self.log}")
        self._postmaster = None
        self._going_down = False
        forget(process.pid)
        self._guard.forget_server(self.data)

    def kill_backend(self, pid: int) -> None:
        """SIGKILL one backend, which makes the postmaster restart all of them. Refuses a pid that is not its child."""
        if self.pid is None or _parent(pid) != self.pid:
            raise EnvironmentFailed(f"process {pid} is not, or no longer, a backend of our server; it was left alone")
        os.kill(pid, signal.SIGKILL)

    async def remove(self) -> None:
        """Stop at once and leave nothing."""
        await self.stop("immediate")
        if self._home is not None:
            if self.disk is not None:
                _unmounted(self.disk)
                self.disk = None
            shutil.rmtree(self._home, ignore_errors=True)
            self._guard.forget_folder(self._home)
            self._home = None

    def leave_running(self) -> None:
        """Let it outlive the harness."""
        self._guard.forget_server(self.data)
        self._guard.forget_folder(self.data.parent)

    async def _start_on(self, port: int) -> bool:
        """Whether it came up; False when the port was taken. Other failures raise with the log's last words."""
        began = self.log.stat().st_size if self.log.exists() else 0
        (self.data / "postmaster.pid").unlink(missing_ok=True)  # of a predecessor; we know that it is dead
        self._guard.watch_server(self.data)
        if self._postmaster is not None:
            forget(self._postmaster.pid)  # it went down by itself
        self._postmaster = process = self._launched(port)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self._ready():
                return True
            if process.poll() is not None:
                said = _since(self.log, began)
                if "Address already in use" in said:
                    return False
                raise EnvironmentFailed(f"PostgreSQL {self.binaries.version} did not start: {_last_line(said)}")
            await asyncio.sleep(POLL_SECONDS)
        await self.stop("immediate")
        raise EnvironmentFailed(
            f"PostgreSQL {self.binaries.version} did not accept connections within {START_SECONDS:g} s; see {self.log}"
        )

    def _launched(self, port: int) -> "subprocess.Popen[bytes]":
        """Blocks for the millisecond that fork and exec take."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        with self.log.open("ab") as output:
            return subprocess.Popen(
                [self.binaries.folder / "postgres", "-D", self.data, "-p", str(port), *self._arguments],
                cwd="/",
                env=inherited | {"LC_ALL": "C"} | (self.clock.environment() if self.clock else {}),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C is ours to handle, not its
                **self._account.identity,
            )

    def _ready(self) -> bool:
        """What pg_ctl looks at: the eighth line of postmaster.pid."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[7].strip() == "ready"


def initialised(binaries: Binaries, account: Account) -> Path:
    """A folder whose ``data`` is a data folder that initdb has just made; kept between runs."""
    recipe = hashlib.sha256(repr((binaries.fingerprint(), INITDB, account.uid, 1)).encode()).hexdigest()[:16]

    def make(folder: Path) -> None:
        done = account.run([binaries.folder / "initdb", "-D", folder / "data", *INITDB])
        if done.returncode != 0:
            raise EnvironmentFailed(f"initdb of PostgreSQL {binaries.version} failed: {_last_line(done.stderr)}")

    return kept(f"data-{binaries.version}-{recipe}", account, make)


def _folder_for(account: Account, guard: Guard) -> Path:
    """A new folder that the server's user owns, in a place that it can enter. Watched before it exists."""
    for place in dict.fromkeys((tempfile.gettempdir(), "/var/tmp", "/tmp")):  # noqa: S108  private, and not guessable
        folder = Path(place).resolve() / f"queueproof-{secrets.token_hex(8)}"
        guard.watch_folder(folder)
        try:
            folder.mkdir(mode=0o700)
            if account.uid is not None and account.gid is not None:
                os.chown(folder, account.uid, account.gid)
            if account.may_write(folder):
                return folder
            folder.rmdir()
        except OSError:
            pass  # not a place to write; try the next
        guard.forget_folder(folder)
    raise EnvironmentFailed(f"user {account.name} can write to no temporary folder; name one with TMPDIR")


def _mounted(folder: Path, megabytes: int, account: Account) -> bool:
    """Whether a small disk in memory could be put there; only root may, and not everywhere."""
    owner = f",uid={account.uid},gid={account.gid}" if account.uid is not None else ""
    options = f"size={megabytes}m,mode=0700{owner}"
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "queueproof", folder], capture_output=True, check=False, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _unmounted(folder: Path) -> None:
    subprocess.run(["umount", "--lazy", folder], capture_output=True, check=False, timeout=10)


def _free_port() -> int:
    with contextlib.closing(socket.socket()) as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _parent(pid: int) -> int | None:
    """The parent of a living process."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[1])
    except OSError:
        if Path("/proc/self").exists():
            return None
    said = subprocess.run(
        ["ps", "-o", "ppid=", "-p", str(pid)], capture_output=True, text=True, check=False, timeout=5
    ).stdout.strip()
    return int(said) if said else None


def _since(log: Path, offset: int) -> str:
    with log.open("rb") as file:
        file.seek(offset)
        return file.read(64 * 1024).decode("utf-8", "replace")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if "FATAL" in line or "error" in line.lower()]
    return (telling or lines or ["it said nothing"])[-1].strip()
