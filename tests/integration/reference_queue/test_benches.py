"""Both benchmarks, small: they measure what they say. Their figures are no test's matter."""

import asyncio

import pytest

from harness.bench import claim, retention

pytestmark = pytest.mark.slow


def test_the_claim_benchmark() -> None:
    result = asyncio.run(claim.run(small=True))
    assert result["met"]["plan"]
    assert result["met"]["wal"]
    for batch in (1, 10):
        for workers in claim.SMALL.workers:
            case = result["throughput"]["cases"][f"batch {batch}, {workers} workers"]
            assert case["jobs_per_second"] > 0
            assert case["over_pgbench"] == pytest.approx(
                case["jobs_per_second"] / case["pgbench_jobs_per_second"], rel=0.02
            )
            assert case["cpu_us_per_job"] > 0


def test_the_retention_benchmark() -> None:
    result = asyncio.run(retention.run(small=True))
    assert result["is_complete"]
    assert result["retained_jobs"] == retention.SMALL.finished
    assert result["retained_audit_rows"] == 3 * retention.SMALL.finished
    assert min(figures["claims"] for figures in result["claims"].values()) > 0
