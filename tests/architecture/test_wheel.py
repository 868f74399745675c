"""The wheel that is built from this tree has everything that the product reads at run time, and nothing else."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("harness", "scenarios", "reference_queue", "reports")


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names of its files, as hatchling builds it."""
    pytest.importorskip("hatchling", reason="the build backend is not installed here")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_file_of_the_packages_is_in_it(contents: set[str]) -> None:
    listed = subprocess.run(["git", "ls-files", "-z", *PACKAGES], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this tree is no git checkout")
    wanted = {name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()}
    assert wanted - contents == set()


@pytest.mark.parametrize("kind", [".sql", ".toml", ".jinja", ".css", ".sh", ".json", ".py"])
def test_data_of_every_kind_is_in_it(contents: set[str], kind: str) -> None:
    assert any(name.endswith(kind) for name in contents)


@pytest.mark.parametrize(
    "name",
    [
        "harness/postgres/sql/create_truth.sql",
        "harness/run/requirements.toml",
        "harness/run/starters/shell/worker.sh",
        "harness/subjects/peers/shell/subject.toml",
        "harness/subjects/broken/complete_by_id_only/subject.toml",
        "reference_queue/subject.toml",
        "reports/schema/document.schema.json",
        "reports/templates/report.html.jinja",
        "scenarios/README.md",
    ],
)
def test_what_is_read_at_run_time_is_in_it(contents: set[str], name: str) -> None:
    assert name in contents


def test_nothing_else_is_in_it(contents: set[str]) -> None:
    tops = {name.partition("/")[0] for name in contents}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)
    assert not any("__pycache__" in name or name.endswith((".pyc", ".log")) for name in contents)
