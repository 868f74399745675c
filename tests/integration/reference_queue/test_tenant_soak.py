"""The soak of tenants' caps, small: `tests/soak_tenants.py` is the large one."""

from harness.postgres.address import Address
from harness.processes.watchdog import Watchdog
from tests.soak_tenants import CAP, Plan, occupied, soak


def test_claimers_killed_at_random_never_exceed_a_cap_and_use_it(database: Address, watchdog: Watchdog) -> None:
    plan = Plan(
        jobs=160, tenants=2, processes=4, claimers_each=3, lease_seconds=1.0, kill_every_seconds=(0.7, 1.5), seed=3
    )
    found = soak(database.dsn(), watchdog, plan)
    assert (found.done, found.inconsistencies) == (160, 0)
    assert (found.most_running_by_trigger, found.most_running_by_snapshot) == (CAP, CAP)
    assert found.kills >= 3
    assert found.takeovers >= 1
    assert found.used >= 0.8  # the large one asks for 0.95; here the last starts weigh more


def test_the_truth_tells_too_many_and_too_few() -> None:
    """Four at once are seen, and permits that lie idle: three grants, one end, and two more grants much later."""
    assert occupied([(0.0, 1), (0.0, 1), (0.0, 1), (1.0, 1), (2.0, -1)]) == (4, 1.0)
    most, used = occupied([(0.0, 1), (0.0, 1), (0.0, 1), (5.0, -1), (10.0, 1)])
    assert (most, used) == (3, (3 * 5 + 2 * 5) / 30)
