"""The watchdog's own process. Started as a plain file, standard library only, so that it is up in milliseconds.

It reads what to watch from a pipe. When the pipe closes without a goodbye, the harness is dead: it ends the process
groups, the servers and whatever else carries its mark, removes the folders, and exits; all within 5 seconds.

Nothing is ended by a remembered number alone. A group counts while its leader was born when it was first seen, a
server's processes are those that work in its data folder, so a pid that the system has reused is left in peace.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time

ALL_WITHIN_SECONDS = 4.5
SERVERS_WITHIN_SECONDS = 2.0
POLL_SECONDS = 0.02
PROC = os.path.exists("/proc/self/stat")  # noqa: PTH110  pathlib would double the time to start


def born(pid: int) -> str | None:
    """When a process was started, in the system's own terms; None when it is gone or a zombie."""
    if PROC:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123  no pathlib here
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            return None
        return None if fields[0] in {b"Z", b"X"} else fields[19].decode()
    found = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]  # noqa: PTH208


def _read(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:  # noqa: PTH123  no pathlib here
            return file.read()
    except OSError:
        return b""


def postmasters(data_folder: str) -> set[int]:
    """Processes started with ``-D data_folder``: the server, or an initdb or copy caught on the way there."""
    if PROC:
        wanted = b"\0-D\0" + os.fsencode(data_folder) + b"\0"
        return {pid for pid in _pids() if wanted in _read(pid, "cmdline")}
    listing = subprocess.run(["ps", "-axo", "pid=,command="], capture_output=True, text=True, check=False).stdout
    return {int(line.split()[0]) for line in listing.splitlines() if f" -D {data_folder} " in f"{line} "}


def servants(data_folder: str) -> set[int]:
    """The server and its backends, which all work in the data folder (they overwrite their command lines)."""
    found = postmasters(data_folder)
    if PROC:
        for pid in _pids():
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/{pid}/cwd") == data_folder:  # noqa: PTH115
                    found.add(pid)
    return {pid for pid in found if born(pid) is not None}


def marked(mark: str) -> set[int]:
    """Living processes that carry our mark in their environment: workers that left their group, or were just born."""
    if not PROC:
        return set()
    wanted = os.fsencode(mark)
    return {pid for pid in _pids() if wanted in _read(pid, "environ").split(b"\0") and born(pid) is not None}


def forget_clock(pid: int) -> None:
    """Remove what libfaketime shares among a process and its children."""
    for name in (f"/dev/shm/sem.faketime_sem_{pid}", f"/dev/shm/faketime_shm_{pid}"):  # noqa: S108  the library's choice
        with contextlib.suppress(OSError):
            os.unlink(name)  # noqa: PTH108  no pathlib here


def remove_container(name: str, within_seconds: float) -> None:
    """Ask the Docker engine to end a container and forget it: by its socket, or by its client when it is elsewhere."""
    host = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if not host.startswith("unix://"):
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                ["docker", "rm", "--force", "--volumes", name],
                capture_output=True,
                check=False,
                timeout=max(0.5, within_seconds),
            )
        return
    import socket  # here, because only runs in containers need it

    request = f"DELETE /containers/{name}?force=true&v=true HTTP/1.0\r\nHost: docker\r\n\r\n"
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as engine:
        engine.settimeout(max(0.5, within_seconds))
        engine.connect(host.removeprefix("unix://"))
        engine.sendall(request.encode())
        while engine.recv(4096):
            pass


def _send(pids: set[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def clean_up(watched: dict[str, dict[object, str | None]], mark: str) -> None:
    """End and remove everything that is still watched."""
    end = time.monotonic() + ALL_WITHIN_SECONDS
    for pgid, birth in watched["group"].items():
        if isinstance(pgid, int) and birth is not None and born(pgid) == birth:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                # SIGKILL ends a stopped process too. SIGCONT must not come first: it would let a paused worker act.
                os.killpg(pgid, signal.SIGKILL)
                os.killpg(pgid, signal.SIGCONT)
    while (left := marked(mark)) and time.monotonic() < end:
        _send(left, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
    folders = [str(folder) for folder in watched["server"]]
    doomed_pids = {pid for pid in watched["group"] if isinstance(pid, int)}
    doomed_pids |= {pid for folder in folders for pid in postmasters(folder)}
    for folder in folders:
        _send(postmasters(folder), signal.SIGCONT)
        _send(postmasters(folder), signal.SIGQUIT)
    patience = time.monotonic() + SERVERS_WITHIN_SECONDS
    while (left := {pid for folder in folders for pid in servants(folder)}) and time.monotonic() < end:
        if time.monotonic() > patience:
            _send(left, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
    for pid in doomed_pids:
        forget_clock(pid)
    for container in map(str, watched["container"]):
        remove_container(container, end - time.monotonic())
    import shutil  # here, because it is slow to import and seldom needed

    for doomed in map(str, watched["folder"]):
        if os.path.ismount(doomed):
            subprocess.run(["umount", "--lazy", doomed], capture_output=True, check=False)
        while os.path.lexists(doomed):
            shutil.rmtree(doomed, ignore_errors=True)
            if time.monotonic() > end:
                break
            time.sleep(POLL_SECONDS)


def main(mark: str) -> None:
    """Watch until told to go, or until the harness is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    watched: dict[str, dict[object, str | None]] = {"group": {}, "server": {}, "folder": {}, "container": {}}
    for line in sys.stdin.buffer:
        try:
            verb, kind, what = json.loads(line)
        except ValueError:  # the harness died in the middle of a line
            break
        if verb == "exit":
            # A daemon that a worker has made left its group, but not its environment.
            _send(marked(mark), signal.SIGKILL)
            return
        if verb == "forget":
            watched[kind].pop(what, None)
        else:
            watched[kind][what] = born(what) if kind == "group" else None
    clean_up(watched, mark)


if __name__ == "__main__":
    main(sys.argv[1])
