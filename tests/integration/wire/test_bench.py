"""The benchmark measures what it says, on both ways, and leaves nothing behind."""

import os

import pytest
import uvloop

from harness.bench import wire
from harness.contracts.problem import EnvironmentFailed
from harness.postgres.address import Address


def test_the_benchmark_compares_both_ways(database: Address) -> None:
    result = uvloop.run(wire.measure(database.host, database.port, database.env(), seconds=0.1, turns=1))
    assert result["loop"] == "uvloop"
    for client, connections in wire.CASES:
        case = f"{client}_{connections}"
        assert result[f"{case}_direct_per_second"] > 0
        quotient = result[f"{case}_proxied_per_second"] / result[f"{case}_direct_per_second"]
        assert result[f"{case}_ratio"] == pytest.approx(quotient, rel=0.02)


def test_a_client_that_cannot_log_in_is_told(database: Address) -> None:
    nobody = {**os.environ, **database.env(), "PGUSER": "no_such_role"}
    with pytest.raises(EnvironmentFailed, match="no_such_role"):
        uvloop.run(wire.measure(database.host, database.port, nobody, seconds=0.1, turns=1))
