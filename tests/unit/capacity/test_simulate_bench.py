"""The speed bench tells the same drain for all four, and says what it compared."""

import pytest

from harness.bench import rivals, simulate
from harness.contracts.problem import EnvironmentFailed


def test_all_four_drain_at_the_same_instant() -> None:
    result = simulate.run(rounds=1, replications=5)
    assert result["same_drain"]
    assert set(result["jobs_per_cpu_second"]) == {"path", "vectorised", "simpy", "ciw"}
    assert result["over_simpy"] > 3  # the aim itself is judged on a quiet machine, not here


def test_a_missing_rival_is_told_as_the_environments_fault() -> None:
    with pytest.raises(EnvironmentFailed, match="pip install nosuchqueue"):
        rivals._library("nosuchqueue")
