"""A subject, a site and a stage for exploring: what the tests of schedules on a real server share."""

import contextlib
from pathlib import Path

import pytest

from harness.explore.workers import WorkerStage
from harness.history.recorder import Recorder
from harness.run.provision import open_site
from harness.run.subject_file import load_subject
from harness.wire.statements import StatementBook

PASTED = Path(__file__).with_name("pasted.toml")
WORKER = Path(__file__).with_name("two_step_worker.py")


@pytest.fixture
def grounds(cluster, watchdog, tmp_path):
    """Opens a ground for a subject's folder: grounds(folder)."""

    @contextlib.asynccontextmanager
    async def opened(folder):
        tmp_path.chmod(0o755)
        site = await open_site(load_subject(folder), cluster, watchdog, tmp_path)
        try:
            with Recorder(tmp_path / "history.jsonl") as recorder:
                async with site.ground("explore:1", StatementBook(), frozenset()) as ground:
                    yield ground, recorder
        finally:
            await cluster.drop_database("template")

    return opened


@pytest.fixture
def stages(grounds):
    """Opens a stage of a subject: stages(folder, case)."""

    @contextlib.asynccontextmanager
    async def opened(folder, case):
        async with grounds(folder) as (ground, recorder), WorkerStage(ground, recorder, case) as stage:
            yield stage

    return opened


@pytest.fixture
def pasted(tmp_path):
    """Writes a variant of the pasted queue: pasted(claim=("from", "to"), ...), each a replacement in that statement."""

    def write(name, **changes):
        folder = tmp_path / name
        folder.mkdir()
        text = PASTED.read_text()
        for old, new in changes.values():
            assert old in text, old
            text = text.replace(old, new)
        (folder / "subject.toml").write_text(text)
        (folder / "pasted.sql").write_text(PASTED.with_suffix(".sql").read_text())
        return folder

    return write


@pytest.fixture
def two_steps(tmp_path):
    """Writes a subject with a worker of its own: two_steps("blind" | "checked" | "across_call")."""

    def write(how):
        folder = tmp_path / how
        folder.mkdir()
        (folder / "worker.py").write_text(WORKER.read_text())
        (folder / "schema.sql").write_text(
            "create table task (id bigint generated always as identity primary key, key text not null,"
            " state text not null default 'pending', worker text, version int not null default 0);"
        )
        (folder / "subject.toml").write_text(
            f"""
[subject]
name = "{how}"
guarantee = "at-least-once"
order = "none"
sink = "keyed"
recovery = "replay"
poll = "100ms"
takeover_within = "never"
install.sql = "schema.sql"
enqueue.sql = "insert into task (key) values (%(key)s)"

[subject.worker]
command = ["{{python}}", "worker.py"]
env = {{ HOW = "{how}", POLL = "{{poll}}" }}

[subject.jobs]
table = "task"
id = "id"
key = "key"
state = "state"
owner = "worker"
token = "version"
"""
        )
        return folder

    return write
