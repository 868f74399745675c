"""See the scenario's own docstring."""

from harness.contracts.scenario import scenario
from harness.explore.case import Case
from harness.explore.inside import (
    ALL_ORDERS,
    ORDERS_WITH_A_TAKEOVER,
    can_be_stepped,
    can_end_leases,
    explore_inside,
)
from harness.history.facts.said import saw
from harness.invariants.finished_stays_finished import finished_stays_finished
from harness.invariants.no_double_execution import no_double_execution
from harness.invariants.no_stale_write import no_stale_write
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab


@scenario(
    serves=["V2", "V5", "V11", "V12"],
    must_hold=[one_owner, no_double_execution, no_stale_write, finished_stays_finished],
    must_happen=[saw(ALL_ORDERS)],
    needs=[can_be_stepped],
    excuses=["no_lost_job", "lease_by_database_clock"],  # it is run with a longer lease, and with no time to end in
    deadline_seconds=120,
)
async def workers_every_interleaving(lab: Lab) -> None:
    """Two workers and one job, in every order of their steps; then every order in which its lease ends once, too.

    What happens
        Two workers are held before each of their requests, to the database and to the outside, and let go one at a time, in
        every order in which claim, call and complete can follow each other; then in every order of claim, the end of the
        lease, takeover, and the late call or complete of the first. Orders that only swap what cannot matter are run once.
        A lease is ended by a write to its column: where `subject.jobs.lease_until` is not mapped, or is an expression, the
        orders with its end are left out, the play says so, and what only a takeover could break does not count as held.

    Why it matters
        A test that waits for a race proves that it did not happen; running every order proves that it cannot, for as many
        steps as there are here.

    What must hold
        In each order the job has one owner at a time, is executed once without an excuse, and an earlier holder changes
        nothing after a takeover.
    """
    leases_end = can_end_leases(lab)
    await explore_inside(lab, ALL_ORDERS, Case())
    if leases_end:
        await explore_inside(lab, ORDERS_WITH_A_TAKEOVER, Case(expiries=1, polls=0))
