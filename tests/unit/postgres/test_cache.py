"""What is kept appears whole or not at all, made once however many ask."""

import threading
from pathlib import Path

import pytest

from harness.contracts.problem import EnvironmentFailed
from harness.postgres.account import Account
from harness.postgres.cache import kept

OURSELVES = Account(None, None, "ourselves")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("QUEUEPROOF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_it_is_made_once_by_whoever_comes_first() -> None:
    made = []
    everybody_asks = threading.Barrier(4)

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "content").write_text("whole")

    def ask() -> None:
        everybody_asks.wait(5)
        assert (kept("thing", OURSELVES, make) / "content").read_text() == "whole"

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert len(made) == 1


def test_a_failure_leaves_nothing_and_the_next_one_makes_it(cache: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        kept("thing", OURSELVES, fail)

    assert [path.name for path in cache.iterdir()] == ["thing.lock"]
    assert kept("thing", OURSELVES, lambda folder: (folder / "whole").touch()) == cache / "thing"


def test_what_a_killed_process_left_is_removed(cache: Path) -> None:
    (cache / "thing.making-dead").mkdir(parents=True)

    kept("thing", OURSELVES, lambda folder: None)

    assert sorted(path.name for path in cache.iterdir()) == ["thing", "thing.lock"]


def test_a_place_that_cannot_be_written_is_named(cache: Path) -> None:
    cache.write_text("a file, where a folder should be")

    with pytest.raises(EnvironmentFailed, match=f"{cache}.*QUEUEPROOF_CACHE"):
        kept("thing", OURSELVES, lambda folder: None)
