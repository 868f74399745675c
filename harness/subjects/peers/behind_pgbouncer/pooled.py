"""Runs a command behind a PgBouncer of its own, in transaction mode. Linux; PgBouncer has to be installed.

python pooled.py COMMAND...: the command finds the pooler where DATABASE_URL, PGHOST and PGPORT led to the server. A stop
that is sent to the whole process group reaches the command alone; when the command or this process ends, so does the pooler.
"""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit, urlunsplit

READY_SECONDS = 5.0
SERVER_CONNECTIONS = 4
SERVER_RETRY_SECONDS = 1
WILL_NOT_RUN_AS_ROOT = ("postgres", "nobody")
PR_SET_PDEATHSIG = 1


def main(command: list[str]) -> int:
    program = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")
    if program is None or not command:
        return complain("usage: pooled.py COMMAND..." if program else "PgBouncer is not installed")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)  # not SIG_IGN, which the command would inherit
    port = free_port()
    pooler = start_pooler(program, port)
    try:
        if not answers(port, pooler):
            return complain(f"PgBouncer does not answer (exit code {pooler.poll()})")
        return exit_code(subprocess.run(command, env=behind(port), check=False).returncode)
    finally:
        pooler.kill()
        pooler.wait()


def start_pooler(program: str, port: int) -> "subprocess.Popen[bytes]":
    """In a session of its own, as a sidecar would be: a pause or a stop of the worker is none of the pooler's."""
    config = os.memfd_create("pgbouncer.ini")  # it may hold a password, and must leave no file behind
    os.write(config, configuration(port).encode())
    libc = ctypes.CDLL(None, use_errno=True)
    humble = next((name for name in WILL_NOT_RUN_AS_ROOT if os.geteuid() == 0 and known(name)), None)
    return subprocess.Popen(
        [program, f"/proc/self/fd/{config}"],
        pass_fds=[config],
        start_new_session=True,
        user=humble,
        group=pwd.getpwnam(humble).pw_gid if humble else None,
        extra_groups=[] if humble else None,
        preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),  # after the change of user, which would undo it
        stdin=subprocess.DEVNULL,
    )


def configuration(port: int) -> str:
    env = os.environ
    password = f" password={env['PGPASSWORD']}" if env.get("PGPASSWORD") else ""
    return (
        "[databases]\n"
        f"{env['PGDATABASE']} = host={env['PGHOST']} port={env['PGPORT']} user={env['PGUSER']}{password}\n"
        "[pgbouncer]\n"
        "listen_addr = 127.0.0.1\n"
        f"listen_port = {port}\n"
        "unix_socket_dir =\n"
        "auth_type = any\n"
        "pool_mode = transaction\n"
        f"default_pool_size = {SERVER_CONNECTIONS}\n"
        f"min_pool_size = {SERVER_CONNECTIONS}\n"
        "server_round_robin = 1\n"  # else a command alone on its pooler would mostly meet its own session again
        # By default 15: a server that was away for a moment would be away for a quarter of a minute.
        f"server_login_retry = {SERVER_RETRY_SECONDS}\n"
        "ignore_startup_parameters = extra_float_digits, options, statement_timeout, lock_timeout\n"
    )


def behind(port: int) -> dict[str, str]:
    """The command's environment: the same database, through the pooler."""
    env = {**os.environ, "PGHOST": "127.0.0.1", "PGPORT": str(port)}
    if "DATABASE_URL" in env:
        url = urlsplit(env["DATABASE_URL"])
        user, at, _ = url.netloc.rpartition("@")
        env["DATABASE_URL"] = urlunsplit(url._replace(netloc=f"{user}{at}127.0.0.1:{port}"))
    return env


def answers(port: int, pooler: "subprocess.Popen[bytes]") -> bool:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and pooler.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.01)
        else:
            return True
    return False


def exit_code(returned: int) -> int:
    return 128 - returned if returned < 0 else returned


def complain(sentence: str) -> int:
    print(f"pooled.py: {sentence}", file=sys.stderr)
    return 1


def known(name: str) -> bool:
    try:
        return bool(pwd.getpwnam(name))
    except KeyError:
        return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
