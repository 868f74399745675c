"""What a load run leaves behind when nothing of it is alive any more: what is analysed, judged and told."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from harness.capacity.sizing import SizeAnswer
from harness.load.plan import LoadPlan, Scaled
from harness.load.producing import Produced
from harness.load.schedule import Times
from harness.load.steadiness import Steadiness
from harness.load.table import Ended
from harness.load.trace import Attempt, Look

WARM_UP, STEADY, OUTAGE, RECOVERY = "warm-up", "steady", "outage", "recovery"


@dataclass(frozen=True)
class Steady:
    """What the queue is like when nothing is wrong: the limits within which it counts as current."""

    usual: int  # unstarted, the median: claims take a moment, so it need not be zero
    unstarted: float
    oldest_unstarted_age: float
    oldest_unfinished_age: float
    moves: bool  # the oldest unfinished job is not the same one all the time


@dataclass
class Phases:
    """When what began, in seconds of the run."""

    steady_began: float = 0.0
    outage_began: float = 0.0
    recovery_began: float = 0.0
    current_at: float | None = None  # since when it has been current, and was so for the whole window
    ended: float = 0.0
    warm_up: Steadiness | None = None


@dataclass(frozen=True)
class Measured:
    """Everything a run leaves: what is analysed, and nothing that is alive."""

    plan: LoadPlan
    scaled: Scaled
    answer: SizeAnswer  # theory about the run as it was run
    seed: int
    phases: Phases
    steady: Steady
    held_seconds: float  # how long it had to be current
    stuck_seconds: float  # at the head for so long: it does not move
    dues: Times
    attempts: tuple[Attempt, ...]
    starts: Times
    effects: np.ndarray
    produced: Produced
    ended: tuple[Ended, ...]
    deletes: bool
    samples: pd.DataFrame
    looks: tuple[Look, ...]
    strangers: int
    worst_loop_lag: float
    prefix: str
    server_version: str
    server_source: str
    server_address: str
    server_settings: dict[str, str]
    cores: int
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = field(default=())
    given_up: Mapping[int, float] = field(default_factory=dict)  # job to when the table said it is dead or set aside
