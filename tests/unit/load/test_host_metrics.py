"""Another machine's figures, as its node exporter prints them, and what a report makes of them."""

import asyncio
import contextlib
import dataclasses

import pytest

from harness.contracts.problem import BadInput, EnvironmentFailed
from harness.load.compose import conclude_run, load_document
from harness.load.samplers import HostMetrics
from harness.run.compose import RunFacts
from harness.run.subject_file import load_subject, reference_queue_folder


def exporter(idle, user, iowait, cores=4):
    """As version 1.5 prints it, each mode shared evenly among the cores."""
    lines = [
        "# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.",
        "# TYPE node_cpu_seconds_total counter",
    ]
    for core in range(cores):
        for mode, seconds in (("idle", idle), ("iowait", iowait), ("user", user)):
            lines.append(f'node_cpu_seconds_total{{cpu="{core}",mode="{mode}"}} {seconds / cores!r}')
        lines.append(f'node_cpu_guest_seconds_total{{cpu="{core}",mode="user"}} 5')
    return "\n".join(lines)


def test_shares_are_those_since_the_last_look_and_cores_are_counted():
    host = HostMetrics("http://db:9100/metrics")
    assert host._read(exporter(1000, 500, 10)) == {}
    assert host._read(exporter(1002, 505, 13)) == {
        "host_cores": 4,
        "host_cpu_percent": 50.0,
        "host_disk_wait_percent": 30.0,
    }


def test_an_answer_that_is_none_of_an_exporter_tells_nothing():
    host = HostMetrics("http://db:9100/metrics")
    host._read(exporter(1, 1, 1))
    assert host._read("<html>not here</html>") == {}


def test_where_nobody_answers_no_run_is_begun():
    async def check():
        async with contextlib.aclosing(HostMetrics("http://127.0.0.1:9/metrics")) as host:
            await host.check()

    with pytest.raises(EnvironmentFailed, match=r"no node exporter answers at http://127\.0\.0\.1:9/metrics"):
        asyncio.run(check())


def test_what_is_no_url_is_refused():
    with pytest.raises(BadInput, match='host-metrics: "db:9100"'):
        HostMetrics("db:9100")


def test_the_database_host_is_judged_by_its_own_cores_not_by_ours(imagine):
    run = imagine()
    samples = run.samples.assign(host_cores=8, host_cpu_percent=75.0)
    loaded = conclude_run(dataclasses.replace(run, samples=samples))
    document = load_document(
        RunFacts("queueproof load", "now", 60.0, 7), load_subject(reference_queue_folder()), loaded
    )
    database = next(one for one in document.load.thresholds if one.name == "database CPU")
    assert (database.value, database.measured) == (5.6, 6.0)
    assert document.load.bottleneck == "the database's host, where 6.0 of 8 cores were used while draining"
