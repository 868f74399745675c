"""How the claim benchmark judges: by the plan's own words, and by the same statements on both sides."""

import pytest

from harness.bench.claim import candidate_scans, pgbench_script
from harness.bench.queue_tables import quantile
from reference_queue.statements import Statements


def plan(*scans: dict) -> dict:
    """A claim's plan with these nodes below its candidates, one of them in a sub-plan, and another scan elsewhere."""
    elsewhere = {"Node Type": "Seq Scan", "Relation Name": "queue_job", "Subplan Name": "CTE other"}
    locked = {"Node Type": "LockRows", "Plans": list(scans)}
    candidate = {"Node Type": "Limit", "Subplan Name": "CTE candidate", "Plans": [locked]}
    return {"Node Type": "Sort", "Plans": [candidate, elsewhere]}


@pytest.mark.parametrize(
    ("scan", "told"),
    [
        (
            {"Node Type": "Index Scan", "Relation Name": "queue_job", "Index Name": "queue_job_due"},
            ["Index Scan using queue_job_due"],
        ),
        ({"Node Type": "Seq Scan", "Relation Name": "queue_job"}, ["Seq Scan"]),
        (
            {
                "Node Type": "Bitmap Heap Scan",
                "Relation Name": "queue_job",
                "Plans": [{"Node Type": "Bitmap Index Scan", "Index Name": "i"}],
            },
            ["Bitmap Heap Scan", "Bitmap Index Scan using i"],
        ),
    ],
)
def test_how_candidates_are_found_is_read_from_the_plan(scan: dict, told: list[str]) -> None:
    below = {
        "Node Type": "Index Scan",
        "Relation Name": "queue_job",
        "Index Name": "of_group",
        "Parent Relationship": "SubPlan",
    }
    assert list(candidate_scans(plan({**scan, "Plans": [*scan.get("Plans", []), below]}))) == told


@pytest.mark.parametrize(
    ("batch", "completes"), [(1, "where id = :id and version = :version"), (10, "unnest(:ids::bigint[]")]
)
def test_pgbench_runs_the_packaged_statements(batch: int, completes: str) -> None:
    script = pgbench_script(Statements(), batch)
    claim = Statements().text("claim", batch)
    assert claim[: claim.index("kind = any")] in script  # word for word, but for the variables
    assert f"limit {batch}\n" in script
    assert completes in script
    assert "%(" not in script


def test_a_quantile_was_measured() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([float(n) for n in range(1000)], 0.99) == 990.0
    assert quantile([1.0], 0.99) == 1.0
