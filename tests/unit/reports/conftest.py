"""Three runs as documents: one that held, one that broke on a nasty key, one that could not tell."""

from collections.abc import Callable

import pytest

from harness.document import (
    Document,
    FactDoc,
    FindingDoc,
    JudgementDoc,
    PlayDoc,
    RecordDoc,
    ServerDoc,
    SubjectDoc,
    Witness,
)
from harness.run.records import records

NASTY_KEY = (
    "order \"7\" of 'Ann' <script>alert(1)</script> | `x` %s \x1b[31mred\x1b[0m \u202eabc \ud800 @everyone\n"
    + "k" * 4096
)

STORY = """A claim is held between its lock and its commit; a second session claims meanwhile.

    What happens
        A locks the first job and stays open. B claims while A's transaction
        is open. A rolls back.

    Why it matters
        A queue whose claim waits for another claim stands still behind its slowest worker.

    What must hold
        B gets the second job at once, and the first can be claimed after the rollback.
"""


def _skip() -> PlayDoc:
    key = "invoice-1"
    return PlayDoc(
        scenario="two_sessions_lock_skip_roll_back",
        title="two sessions lock skip roll back",
        verdict="pass",
        reason="13 invariants held, 3 of 3 facts happened",
        serves=("V3", "V6", "Q7"),
        seconds=0.84,
        story=STORY,
        record="skip",
        facts=(
            FactDoc("the first session held its row locked", happened=True),
            FactDoc("the second session claimed another job meanwhile", happened=True),
            FactDoc("the first job was claimed after the rollback", happened=True),
        ),
        judgements=(
            JudgementDoc("no_lost_job", "Every acknowledged job ends", "pass", serves=("Q16",)),
            JudgementDoc("calls_follow_grants", "No call without a committed grant", "pass", serves=("Q7",)),
        ),
        timeline=(
            Witness(4, 1.2, "database", "invoice-1 is enqueued", "enqueue", 0, key, "pending"),
            Witness(
                9, 30.5, "worker 1", "stands at claimed: the row is locked by its open transaction", "reached", 1, key
            ),
            Witness(
                12,
                44.1,
                "worker 2",
                "claims invoice-2 in 3.1 ms, without waiting",
                "claim",
                2,
                "invoice-2",
                "running",
                "1",
                2000,
            ),
            Witness(15, 61.0, "harness", "worker 1's backend is ended; its transaction rolls back", "backend ended", 1),
            Witness(18, 88.7, "worker 3", "claims invoice-1", "claim", 3, key, "running", "1", 2000),
            Witness(19, 90.1, "worker 3", "calls the sink", "called", 3, key),
            Witness(20, 92.0, "sink", "applies the effect", "applied", 3, key),
            Witness(22, 97.3, "worker 3", "completes invoice-1", "complete", 3, key, "done", "1"),
        ),
        figures={"second_claim_ms": 3.1, "release_spread_ms": 0.41, "first_transaction": "idle in transaction"},
        reproduce="queueproof gate reference_queue --only two_sessions_lock_skip_roll_back --seed 42",
    )


def _takeover() -> PlayDoc:
    key = "invoice-9"
    return PlayDoc(
        scenario="worker_killed_after_commit_before_call",
        title="worker killed after commit before call",
        verdict="pass",
        reason="13 invariants held, 2 of 2 facts happened",
        serves=("V4", "Q11"),
        seconds=3.12,
        story=STORY,
        record="reclaim",
        facts=(
            FactDoc("the worker was killed after its claim was durable", happened=True),
            FactDoc("the job was taken over", happened=True),
        ),
        timeline=(
            Witness(2, 0.9, "database", "invoice-9 is enqueued", "enqueue", 0, key, "pending"),
            Witness(5, 20.4, "worker 1", "claims invoice-9", "claim", 1, key, "running", "1", 2000),
            Witness(6, 22.0, "harness", "SIGKILL to worker 1", "SIGKILL", 1),
            Witness(7, 23.4, "harness", "worker 1 is gone", "worker exited", 1),
            Witness(11, 2240.4, "worker 2", "takes invoice-9 over", "claim", 2, key, "running", "2", 2000),
            Witness(13, 2246.4, "worker 2", "completes invoice-9", "complete", 2, key, "done", "2"),
        ),
        figures={"takeover_seconds": 1.7},
    )


def _not_applicable() -> PlayDoc:
    return PlayDoc(
        scenario="renewal_held_past_the_lease",
        title="renewal held past the lease",
        verdict="not applicable",
        reason="the subject was not seen to renew a lease in the probe",
        serves=("V5", "Q10"),
        seconds=0.0,
        record="stale-token",
    )


def stale(key: str) -> PlayDoc:
    shown = key
    return PlayDoc(
        scenario="worker_paused_past_its_lease_completes_late",
        title="worker paused past its lease completes late",
        verdict="fail",
        reason="a stale holder's complete was accepted",
        serves=("V5", "Q9"),
        seconds=4.61,
        story=STORY,
        record="stale-token",
        findings=(
            FindingDoc(
                "stale_write",
                "A holder that is no longer the latest wrote the row",
                f"Worker 1's complete of {shown} at 4,102.8 ms was stale, because worker 2 had been granted the job "
                f"at 2,140.5 ms with token 2; however the database accepted it and the row went from running to done.",
                ("Q9", "V5"),
                key,
                (1, 2),
                (
                    Witness(7, 12.0, "worker 1", f"claims {shown} with token 1", "claim", 1, key, "running", "1", 2000),
                    Witness(
                        21, 2140.5, "worker 2", "takes the job over with token 2", "claim", 2, key, "running", "2", 2000
                    ),
                    Witness(33, 4102.8, "worker 1", "completes the job: 1 row", "complete", 1, key, "done", "2"),
                ),
                mend="Let every write name its grant (`where id = $1 and token = $2`).",
            ),
        ),
        facts=(
            FactDoc("the worker was paused past its lease", happened=True),
            FactDoc("the job was taken over", happened=True),
        ),
        judgements=(
            JudgementDoc("stale_write", "No write by a stale holder", "fail", "1 finding", ("Q9", "V5")),
            JudgementDoc("no_lost_job", "Every acknowledged job ends", "pass", serves=("Q16",)),
        ),
        timeline=(
            Witness(3, 1.1, "database", "the job is enqueued", "enqueue", 0, key, "pending"),
            Witness(7, 12.0, "worker 1", f"claims {shown} with token 1", "claim", 1, key, "running", "1", 2000),
            Witness(8, 13.4, "worker 1", "calls the sink", "called", 1, key),
            Witness(10, 15.0, "harness", "SIGSTOP to worker 1", "SIGSTOP", 1),
            Witness(11, 16.2, "sink", "applies the effect of worker 1's call", "applied", 1, key),
            Witness(21, 2140.5, "worker 2", "takes the job over with token 2", "claim", 2, key, "running", "2", 2000),
            Witness(24, 2143.9, "worker 2", "calls the sink with the same operation key", "called", 2, key),
            Witness(25, 2144.6, "sink", "knows the operation key: no second effect", "applied", 2, key),
            Witness(31, 4100.0, "harness", "SIGCONT to worker 1", "SIGCONT", 1),
            Witness(33, 4102.8, "worker 1", "completes the job: 1 row", "complete", 1, key, "done", "2"),
            Witness(36, 4150.2, "worker 2", "completes the job: 0 rows", "refused complete", 2, key),
        ),
        figures={"takeover_seconds": 2.13},
        reproduce="queueproof gate harness/subjects/broken/complete_by_id --only worker_paused_past_its_lease_completes_late --seed 42",
    )


def _missed() -> PlayDoc:
    return PlayDoc(
        scenario="network_cut_past_the_lease",
        title="network cut past the lease",
        verdict="inconclusive",
        reason="the job was not taken over, so the late write was never tried",
        serves=("V5", "V10"),
        seconds=6.02,
        record="stale-token",
        facts=(
            FactDoc("the network was cut", happened=True, evidence=(Witness(9, 40.0, "harness", "the cut landed"),)),
            FactDoc("the job was taken over", happened=False),
        ),
        judgements=(
            JudgementDoc("one_owner", "One owner", "pass"),
            JudgementDoc("no_lost_job", "Every job ends", "inconclusive", "job 'a' was given only 2 s"),
        ),
        reproduce="queueproof gate my_queue --only network_cut_past_the_lease --seed 7",
    )


def document(verdict: str, summary: str, *plays: PlayDoc, notes: tuple[str, ...] = ()) -> Document:
    """A run of these plays."""
    return Document(
        schema_version=1,
        tool_version="0.1.0",
        command="queueproof gate my_queue --seed 42",
        started_at="2026-11-30T17:00:00+00:00",
        seconds=21.4,
        seed=42,
        verdict=verdict,
        summary=summary,
        subject=SubjectDoc(
            "my_queue",
            "effectively-once",
            declared={"lease": "2s", "takeover_within": "4s", "sink": "keyed"},
            learned={
                "claim": (
                    "update jobs set state = $1, worker_id = $2 where id in (select id … for update skip locked)",
                ),
                "complete": ("update jobs set state = $1 where id = $2 and version = $3",),
            },
            stops_at={"claimed": "yes", "committing": "yes", "renewing": "it does not renew"},
        ),
        server=ServerDoc("18.4", "embedded", "127.0.0.1:54321", {"fsync": "on", "synchronous_commit": "on"}),
        plays=plays,
        records=records(plays),
        requirements={
            "Q9": ("worker_paused_past_its_lease_completes_late", "stale_write"),
            "V3": ("two_sessions_lock_skip_roll_back",),
            "V4": ("worker_killed_after_commit_before_call",),
        },
        requirement_titles={
            "V3": "Two sessions: lock, skip, roll back, claim again",
            "Q9": "Every write after the claim is fenced",
        },
        notes=notes,
    )


def make_held() -> Document:
    return document("pass", "held (2 of 3 apply)", _skip(), _takeover(), _not_applicable())


def make_broken() -> Document:
    return document(
        "fail",
        "broken: stale_write in worker_paused_past_its_lease_completes_late",
        _skip(),
        stale(NASTY_KEY),
        _takeover(),
        _missed(),
        _not_applicable(),
        notes=("harness/subjects/broken/complete_by_id extends the reference queue",),
    )


def make_inconclusive() -> Document:
    return document(
        "inconclusive", "inconclusive: 1 of 3 could not be judged", _takeover(), _missed(), _not_applicable()
    )


SAMPLES: dict[str, Callable[[], Document]] = {
    "held": make_held,
    "broken": make_broken,
    "inconclusive": make_inconclusive,
}


@pytest.fixture
def held() -> Document:
    return make_held()


@pytest.fixture
def broken() -> Document:
    return make_broken()


@pytest.fixture
def inconclusive() -> Document:
    return make_inconclusive()


@pytest.fixture(params=sorted(SAMPLES))
def sample(request: pytest.FixtureRequest) -> Document:
    """Each of the three in turn."""
    return SAMPLES[request.param]()


@pytest.fixture
def nasty_key() -> str:
    return NASTY_KEY


@pytest.fixture
def record_docs() -> tuple[RecordDoc, ...]:
    return make_held().records
