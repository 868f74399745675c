"""The two-session record: lock, skip, roll back, claim again."""

from harness.contracts.point import Point
from harness.contracts.scenario import scenario
from harness.history.facts.locks import skipped_locked_row
from harness.history.facts.points import backend_ended_before_commit, reached
from harness.invariants.claims_not_blocked import claims_not_blocked
from harness.invariants.free_jobs_are_given_out import free_jobs_are_given_out
from harness.invariants.no_lost_job import no_lost_job
from harness.invariants.one_owner import one_owner
from harness.lab.lab import Lab
from harness.lab.needs import GRANTS


@scenario(
    serves=["V3", "V8", "Q7", "O1"],
    must_hold=[one_owner, claims_not_blocked, free_jobs_are_given_out, no_lost_job],
    must_happen=[reached(Point.CLAIMED), skipped_locked_row, backend_ended_before_commit],
    needs=[GRANTS],
    record="skip",
)
async def workers_two_sessions_skip_roll_back_and_claim_again(lab: Lab) -> None:
    """Session A locks the first job and does not commit; B is given the second at once; A rolls back; the first is claimed.

    What happens
        Worker A is stopped with its rows locked and its transaction open, as the server shows. Worker B claims meanwhile.
        Then A's backend is ended, which rolls its claim back, and the first job can be claimed. Job ids, durations and
        transaction states are in the record.

    Why it matters
        This is the promise of SKIP LOCKED: nobody waits for a row that somebody else is taking, and nothing is lost when
        the taker gives up.

    What must hold
        B is never blocked by A; the first job has no owner but the one that claims it after the roll-back.
    """
    first, second = await lab.enqueue(2)
    a = lab.worker(stops_at=Point.CLAIMED)
    await a.start()
    stood = await a.reached(Point.CLAIMED)
    other = second if stood.key == first else first
    b = lab.worker()
    began = lab.recorder.now_ns()
    await b.start()
    granted = await lab.granted(other, by=b)
    held = await lab.view.backend(stood.pid)
    if granted and held is not None and held.xid is not None:
        lab.saw(
            "a locked row was skipped",
            f"job {other!r} was granted {(lab.recorder.now_ns() - began) / 1e6:.0f} ms after worker {b.number} was started,"
            f" while {held.told()} still held job {stood.key!r}",
            worker=b,
            key=other,
        )
    await a.kill(backend="ends")
    await lab.drained()
