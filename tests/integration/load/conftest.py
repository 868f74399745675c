"""A stable copy of the reference queue, and small load runs on it."""

import asyncio
import shutil

import pytest

from harness.load.compose import conclude_run
from harness.load.plan import read_plan
from harness.load.run import Listener, LoadOptions, run_load
from harness.postgres.options import parse_server
from harness.run.subject_file import load_subject, reference_queue_folder

SMALL = {
    "arrival": "20/s", "service": "100ms", "slots": "6", "outage": "3s", "steady": "2s", "lease": "2s", "heartbeat": "400ms", "poll": "100ms",
    "backoff": "100ms", "backoff_cap": "500ms",
}  # fmt: skip


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    """The folder as it is at the test's beginning: it may be edited meanwhile."""
    copy = tmp_path_factory.mktemp("subject") / "reference_queue"
    shutil.copytree(reference_queue_folder(), copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture
def play(tmp_path, reference):
    """Run a plan and judge it. ``watch`` is told of each line of progress."""

    def run(folder=None, watch=None, said=None, options=None, server="embedded", **words):
        plan = read_plan(**(SMALL | words))
        listener = Listener(said or (lambda _: None), watch or (lambda _: None))
        asked = LoadOptions(
            load_subject(folder or reference),
            plan,
            parse_server(server),
            tmp_path,
            7,
            durable=False,
            **(options or {}),
        )
        return conclude_run(asyncio.run(run_load(asked, listener)))

    return run
