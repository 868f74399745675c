"""One run as data: what every report face renders, and nothing else. Published as a JSON schema.

Frozen, free of clocks and files; the same document gives the same bytes in every face.
"""

import msgspec

SCHEMA_VERSION = 1


class Witness(msgspec.Struct, frozen=True, omit_defaults=True):
    """One history entry that proves a finding, told in a sentence. ``t_ms`` counts from the play's beginning.

    What follows ``text`` is for drawing, empty when unknown. ``kind`` is the event's kind in the history, except that a row
    transition gives its change ("claim", "renew", "complete", ...) and an attempted change that moved no row gives
    "refused claim", "refused complete", ...; a signal gives its name ("SIGSTOP"). ``lease_left_ms`` is what the row's lease
    had left at this transition by the database's own clock, so that no two clocks mix.
    """

    n: int
    t_ms: float
    who: str  # "worker 1", "database", "sink", "harness"
    text: str
    kind: str = ""
    worker: int = 0  # 0: no worker of ours
    key: str | None = None
    state: str = ""  # of the row, after a transition
    token: str | None = None
    lease_left_ms: float | None = None


class FindingDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """What broke. ``sentence`` reads "... because ..., however ..."."""

    invariant: str
    title: str
    sentence: str
    serves: tuple[str, ...] = ()
    key: str | None = None
    workers: tuple[int, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    known: str | None = None  # the reason from --known when it is an accepted finding
    mend: str = ""  # what usually has to be changed; back-ticks set off code


class FactDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that had to happen, and whether it did."""

    sentence: str
    happened: bool
    evidence: tuple[Witness, ...] = ()


class JudgementDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """One invariant's judgement of one play."""

    invariant: str
    title: str
    verdict: str
    reason: str = ""
    serves: tuple[str, ...] = ()


class PlayDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """One scenario, played once (``repeat`` counts from 1), judged."""

    scenario: str
    title: str
    verdict: str  # "pass", "fail", "inconclusive", "not applicable"
    reason: str  # one sentence: why this verdict
    serves: tuple[str, ...]
    repeat: int = 1
    seconds: float = 0
    story: str = ""  # the docstring: What happens / Why it matters / What must hold
    record: str | None = None  # "skip", "reclaim", "stale-token": which record of the acceptance report it feeds
    findings: tuple[FindingDoc, ...] = ()
    facts: tuple[FactDoc, ...] = ()
    judgements: tuple[JudgementDoc, ...] = ()
    left_out: tuple[str, ...] = ()  # parts that were not played, each with why
    must_hold: tuple[str, ...] = ()  # the invariants that the story is about; every other one judges it too
    timeline: tuple[Witness, ...] = ()  # the events that matter, in order, for drawing
    figures: dict[str, float | int | str] = {}  # measured: "takeover_seconds", "release_spread_ms", ...
    reproduce: str = ""


class RecordDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """One of the four records of the acceptance report (O1)."""

    name: str  # "two-session skip", "reclaim after interruption", "stale-token refusal", "net drain"
    verdict: str  # or "not run"
    proves: str
    does_not_prove: str
    reason: str = ""  # when its verdict is not simply the worst of its plays: why
    rows: tuple[dict[str, str], ...] = ()


class SeriesDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a drawing: values at seconds of the run; None where nothing was measured."""

    name: str  # "backlog", "backlog by theory", "oldest age", "arrivals", "database CPU", ...
    unit: str  # "jobs", "s", "jobs/s", "cores", "ms", "rows", ...
    at: tuple[float, ...]
    values: tuple[float | None, ...]
    expected: bool = False  # by theory, not measured


class PhaseDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """One phase of a load run, in seconds of the run."""

    name: str
    began: float
    ended: float
    told: str = ""


class EstimateDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """One answer to "how long until the backlog is gone": measured, or predicted in one of several ways."""

    name: str
    seconds: float | None  # None: never, or not within the run
    reads: str
    told: str
    low: float | None = None
    high: float | None = None


class TermDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """A named part of the difference between predicted and measured."""

    name: str
    seconds: float
    told: str = ""


class ThresholdDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """A number that a vendor can be held to. ``met`` None: it was not measured in this run."""

    name: str
    bound: str  # "at least" or "at most"
    value: float
    unit: str
    measured: float | None = None
    met: bool | None = None
    told: str = ""


class AdviceDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question for a vendor, or advice, with the run's own numbers in it."""

    topic: str
    text: str
    kind: str = "advice"  # or "question"


class TableDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """A plain table: settings compared, offers compared."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    told: str = ""


class LoadDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """A load run: what was asked, what came of it, and what to order. Times are seconds of the run unless said otherwise."""

    setting: dict[str, str]
    time_scale: float
    phases: tuple[PhaseDoc, ...] = ()
    estimates: tuple[EstimateDoc, ...] = ()
    terms: tuple[TermDoc, ...] = ()
    figures: dict[str, float | int | str] = {}
    thresholds: tuple[ThresholdDoc, ...] = ()
    series: tuple[SeriesDoc, ...] = ()
    advice: tuple[AdviceDoc, ...] = ()
    tables: tuple[TableDoc, ...] = ()
    bottleneck: str = ""
    demand: dict[
        str, float
    ] = {}  # in real time: arrival_per_second, outage_seconds, recovery_seconds, attempts_per_job


class ServerDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """The database the run used. Never holds a password."""

    version: str
    source: str  # "embedded", "local", "dsn", "docker"
    address: str = ""
    settings: dict[str, str] = {}


class SubjectDoc(msgspec.Struct, frozen=True, omit_defaults=True):
    """The subject as declared and as probed."""

    name: str
    guarantee: str
    declared: dict[str, str] = {}
    learned: dict[str, tuple[str, ...]] = {}  # change -> normalised statements
    stops_at: dict[str, str] = {}  # point -> "yes" or why not


class Document(msgspec.Struct, frozen=True, omit_defaults=True):
    """One run."""

    schema_version: int
    tool_version: str
    command: str
    started_at: str  # wall clock, ISO 8601, for display only
    seconds: float
    seed: int
    verdict: str
    summary: str  # "held (9 of 17 apply)", "broken: ...", "inconclusive: ..."
    subject: SubjectDoc
    server: ServerDoc
    plays: tuple[PlayDoc, ...]
    records: tuple[RecordDoc, ...] = ()
    requirements: dict[str, tuple[str, ...]] = {}  # id -> scenarios and invariants that serve it in this run
    requirement_titles: dict[str, str] = {}  # id -> what it asks for, in a short sentence
    notes: tuple[str, ...] = ()
    load: LoadDoc | None = None
    tables: tuple[TableDoc, ...] = ()


def measure(name: str, value: float | str) -> tuple[str, str]:
    """A figure as people read it: ``("takeover_seconds", 1.7)`` is ``("takeover", "1.70 s")``. The unit is in the name."""
    for suffix, unit in (("_seconds", " s"), ("_ms", " ms"), ("_us", " µs"), ("_bytes", " B"), ("_percent", " %")):
        if name.endswith(suffix):
            return name.removesuffix(suffix).replace("_", " "), f"{_number(value)}{unit}"
    return name.replace("_", " "), _number(value)


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
