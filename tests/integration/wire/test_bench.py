"""The benchmark measures what it says, on both ways, and leaves nothing behind."""

import os

import pytest
import uvloop

from harness.bench import wire
from harness.contracts.problem import EnvironmentFailed
from harness.postgres.address import Address


def test_the_benchmark_compares_both_ways(database: Address) -> None:
    result = uvloop.run(wire.run(database.host, database.port, database.env(), seconds=0.1, turns=1))
    assert result["loop"] == "uvloop"
    assert [(case["client"], case["connections"]) for case in result["cases"]] == list(wire.CASES)
    for case in result["cases"]:
        assert case["direct_per_second"] > 0
        assert case["ratio"] == pytest.approx(case["proxied_per_second"] / case["direct_per_second"], rel=0.02)


def test_a_client_that_cannot_log_in_is_told(database: Address) -> None:
    nobody = {**os.environ, **database.env(), "PGUSER": "no_such_role"}
    with pytest.raises(EnvironmentFailed, match="no_such_role"):
        uvloop.run(wire.run(database.host, database.port, nobody, seconds=0.1, turns=1))
