"""Several machines, as loopback addresses and as network namespaces: the database, the sink and the workers each on their own."""

import asyncio
import os
import shlex
import shutil
import subprocess
import sys

import pytest

from harness.contracts.verdict import Verdict
from harness.postgres.cluster import open_cluster
from harness.postgres.options import parse_server

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

DATABASE, SINK = "127.0.0.4", "127.0.0.2"
CABLE = "10.213"  # a private network of this test's own


def part(loaded, name):
    return next(each for each in loaded.parts if each.name == name)


@pytest.fixture
def server_on(watchdog, tmp_path):
    """A server that listens on an address of this machine and lets in whoever can reach it; its DSN."""
    with asyncio.Runner() as runner:
        opened = open_cluster(parse_server("embedded"), watchdog, tmp_path, durable=False)
        cluster = runner.run(opened.__aenter__())

        def listen(address):
            data = cluster.server.data
            with (data / "postgresql.conf").open("a") as file:
                file.write(f"listen_addresses = '127.0.0.1,{address}'\n")
            with (data / "pg_hba.conf").open("a") as file:
                file.write("host all all 0.0.0.0/0 trust\n")
            runner.run(cluster.stop())
            runner.run(cluster.start())
            return f"postgresql://{cluster.address.user}@{address}:{cluster.address.port}/postgres"

        try:
            yield listen
        finally:
            runner.run(opened.__aexit__(None, None, None))


class Machines:
    """Starts each printed command on a machine of its own."""

    def __init__(self, folder, logs, on=()):
        self.folder, self.logs, self.on = folder, logs, on
        self.lines, self.told, self.processes = [], [], []

    def said(self, line):
        self.told.append(line)
        if "DATABASE_URL=" not in line:
            return
        self.lines.append(line)
        words = shlex.split(line.strip())
        command = words[words.index("python3") :]
        given = dict(word.split("=", 1) for word in words[: -len(command)])
        number = len(self.processes)
        with (self.logs / f"machine-{number}.log").open("wb") as log:
            self.processes.append(
                subprocess.Popen(
                    [*(self.on[number] if self.on else ()), sys.executable, *command[1:]],
                    cwd=self.folder,
                    env={"PATH": os.environ["PATH"], **given},
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def end(self, number):
        self.processes[number].kill()
        self.processes[number].wait()


@pytest.fixture
def machines(reference, tmp_path):
    made = []

    def make(*on):
        made.append(Machines(reference, tmp_path, on))
        return made[-1]

    yield make
    for each in made:
        for number in range(len(each.processes)):
            each.end(number)


def test_database_sink_and_workers_each_have_an_address_of_their_own(play, machines, server_on):
    far = machines()
    loaded = play(
        said=far.said,
        server=server_on(DATABASE),
        workers="external:2",
        outage_of="sink",
        batch="1",
        options={"sink_host": SINK},
    )
    assert all(f"@{DATABASE}:" in line for line in far.lines)
    secrets = {line.split(f"http://{SINK}:")[1].split("/")[1] for line in far.lines}
    assert len(secrets) == 1
    assert len(secrets.pop()) >= 20
    assert "all 2 workers have joined" in far.told
    assert {attempt.worker for attempt in loaded.run.attempts} == {1, 2}
    assert part(loaded, "nothing_lost").verdict is Verdict.PASS
    assert loaded.run.left == ()
    assert loaded.run.strangers == 0
    assert loaded.run.produced.count == len(loaded.run.ended)


def test_a_worker_elsewhere_that_ends_is_noticed(play, machines, server_on):
    far = machines()

    def watch(progress):
        if progress.phase == "steady" and far.processes[1].poll() is None:
            far.end(1)

    loaded = play(
        said=far.said,
        watch=watch,
        server=server_on(DATABASE),
        workers="external:2",
        outage_of="sink",
        options={"sink_host": SINK},
    )
    assert any(line.startswith("a worker has left: ") for line in far.told), far.told
    assert "worker sessions" in loaded.run.left[0]
    assert part(loaded, "valid_run").verdict is Verdict.INCONCLUSIVE
    assert "a worker left during the run" in part(loaded, "valid_run").reason
    assert loaded.verdict is not Verdict.PASS


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


@pytest.fixture
def cables():
    """Two machines as network namespaces, each with a cable to this one. Names of the namespaces and of our cable ends."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need the program ip and root")
    made, token = [], os.getpid() % 100_000
    try:
        for n in (1, 2):
            space, ours = f"qp{token}n{n}", f"qp{token}c{n}"
            try:
                ip("netns", "add", space)
            except subprocess.CalledProcessError as error:
                pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
            made.append((space, ours))
            ip("link", "add", ours, "type", "veth", "peer", "name", "there", "netns", space)
            ip("address", "add", f"{CABLE}.{n}.1/24", "dev", ours)
            ip("link", "set", ours, "up")
            for words in (
                ("address", "add", f"{CABLE}.{n}.2/24", "dev", "there"),
                ("link", "set", "there", "up"),
                ("route", "add", "default", "via", f"{CABLE}.{n}.1"),
            ):
                ip("-n", space, *words)
        yield made
    finally:
        for space, _ in made:
            ip("netns", "del", space)


def test_a_machine_whose_cable_is_cut_is_missed_by_its_silence(play, machines, server_on, cables):
    """Its sessions stay: no word of it reaches the server. First both work, which is the proof that the namespaces do."""
    far = machines(*(("ip", "netns", "exec", space) for space, _ in cables))
    cut = []

    def watch(progress):
        if progress.phase == "outage" and not cut:
            cut.append(progress.at)
            ip("link", "set", cables[1][1], "down")

    loaded = play(
        said=far.said,
        watch=watch,
        server=server_on(f"{CABLE}.1.1"),
        workers="external:2",
        outage_of="sink",
        at_most="60s",
        options={"sink_host": f"{CABLE}.1.1"},
    )
    run = loaded.run
    before = {attempt.worker for attempt in run.attempts if attempt.called < run.phases.outage_began}
    after = {attempt.worker for attempt in run.attempts if attempt.called >= run.phases.recovery_began}
    assert (before, after) == ({1, 2}, {1})
    assert run.left == ("worker 2 made no call after recovery began",)
    assert loaded.verdict is not Verdict.PASS
