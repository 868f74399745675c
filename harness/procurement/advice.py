"""Questions for the vendor and advice against this design where it does not fit, with the run's own numbers in them."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.document import AdviceDoc
from harness.procurement.thresholds import Demand, Shown

SATURATED_SHARE = 0.7
KILOBYTE = 1000


@dataclass(frozen=True)
class Traffic:
    """What a run put on disk and wire, in real time; None: it was not measured."""

    slots: int
    workers: int
    connections: int | None = None
    commits_per_second: float | None = None
    wal_bytes_per_second: float | None = None
    calls_per_second: float | None = None
    guarantee: str = "at-least-once"
    ordered: bool = False


def questions(demand: Demand, shown: Shown, traffic: Traffic) -> tuple[AdviceDoc, ...]:
    """To be answered in writing, before anything is ordered."""
    return tuple(AdviceDoc(topic, text, "question") for topic, text in _questions(demand, shown, traffic))


def advice(shown: Shown, traffic: Traffic, *, gate_passed: bool, bottleneck: str) -> tuple[AdviceDoc, ...]:
    """When this design is the wrong one, and whether more machines are the answer."""
    return tuple(AdviceDoc(topic, text) for topic, text in _advice(shown, traffic, gate_passed, bottleneck))


def _questions(demand: Demand, shown: Shown, traffic: Traffic) -> Iterator[tuple[str, str]]:
    commits = "" if traffic.commits_per_second is None else f" The run made {traffic.commits_per_second:.0f} commits/s."
    cores = (
        ""
        if shown.database_cores is None
        else f" While draining, the run used {shown.database_cores:.2f} cores of the database."
    )
    wal = (
        ""
        if traffic.wal_bytes_per_second is None
        else f" The run wrote {traffic.wal_bytes_per_second / KILOBYTE:.0f} kB/s of log."
    )
    sessions = traffic.connections or traffic.workers
    yield (
        "self-managed PostgreSQL",
        (
            "May we run PostgreSQL ourselves on this machine, choose its version and settings, and install extensions? If it is"
            f" managed: what is max_connections? {sessions} sessions were open in the run."
        ),
    )
    yield (
        "sustained CPU",
        (
            f"Is the CPU ours all the time, or credits that run out? What is guaranteed after an hour at full load?{cores}"
            f" A drain holds that load for {demand.recovery_seconds:.0f} s."
        ),
    )
    yield (
        "synchronous writes",
        (
            "How many synchronous writes a second does the disk sustain, and how long does one take at the 95th and 99th"
            f" percentile, also while a neighbour or a backup is busy?{commits}{wal}"
        ),
    )
    yield (
        "network from consumers to the database",
        (
            "What is the round trip time, and what does traffic between the zones cost? Each job makes about four round trips,"
            " and each one's time is taken from its slot."
        ),
    )
    yield (
        "administrators' rights",
        "Do we get the rights to create roles, to read pg_stat_activity and pg_locks of all sessions, and to end a session?",
    )
    yield (
        "disks on stop and rebuild",
        (
            "What becomes of the disks when the machine is stopped, resized or rebuilt, and what of local disks? Is the data"
            " encrypted, and who holds the key?"
        ),
    )
    yield (
        "backup billing",
        (
            "How is a backup billed: by size, by writes, by days kept, by restores? Is it independent of the machine's own"
            " storage, and who has tried a restore?"
        ),
    )
    yield (
        "permission to inject faults",
        (
            f"May we, at an agreed time, kill workers and stop the database for {demand.outage_seconds:.0f} s under"
            f" {demand.arrival_per_second:g} jobs/s, to hold you to being current again within {demand.recovery_seconds:.0f} s?"
        ),
    )
    yield (
        "who maintains reclaim and idempotency",
        (
            "Taking over lost jobs and not repeating their effects is the application's work, not the vendor's: a service level"
            " for the machine does not cover it. Who of us maintains it, and who is called at night?"
        ),
    )


def _advice(shown: Shown, traffic: Traffic, gate_passed: bool, bottleneck: str) -> Iterator[tuple[str, str]]:
    if not gate_passed:
        yield (
            "more machines",
            (
                "No advice to add machines is given: this report holds no passing gate of the same subject. More machines make a"
                " queue that repeats or loses jobs do so faster."
            ),
        )
    elif not bottleneck:
        yield (
            "more machines",
            "No advice to add machines is given: the run shows no bottleneck that they would remove.",
        )
    else:
        yield "more machines", f"The gate passed, and the run shows what limits: {bottleneck}."
    yield (
        "strict global order",
        "If all jobs must run in one order, do not use this design: several workers and retries reorder. Order per key is"
        " what a queue on a table can promise"
        + (", and this subject does." if traffic.ordered else ", and this subject states none."),
    )
    yield (
        "no tolerance for duplicates",
        (
            "If an effect must never happen twice and the other side knows no idempotency key, do not use this design, nor any"
            f" other queue: a worker can die after the call. This subject promises {traffic.guarantee}."
        ),
    )
    if shown.database_cores is not None and shown.cores:
        share = shown.database_cores / shown.cores
        saturated = share >= SATURATED_SHARE
        yield (
            "a saturated database",
            f"The database used {share:.0%} of its cores while draining. "
            + (
                "It is saturated: do not put more on it; move the queue to a database of its own, or use a message system."
                if saturated
                else "If the database that is to carry the queue is above 70 % without it, give the queue one of its own."
            ),
        )
    else:
        yield (
            "a saturated database",
            "The database's CPU was not measured. If it is above 70 % without the queue, give the queue one of its own.",
        )
