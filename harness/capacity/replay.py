"""Trace replay: a recorded run walked again with its own arrivals, durations and overhead, without the system.

A drain outside the band may be bad luck; the replay had the same luck. What is left between the two (the residual) is the
system being slower than its parts: claims that wait for each other, slots that sit idle, prefetched jobs nobody else can take.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.capacity.simulation import Job, Limiter, Outage, Path, walk_attempts

TOLERANCE = 0.02  # of the replayed drain; a run without prefetch has come within 0.1 to 0.4 %


@dataclass(frozen=True)
class Trace:
    """A recorded run on one clock. Attempts carry the time the sink held them; what killed workers left unfinished is not in it.

    ``overhead_seconds``: what a slot spends per attempt besides (claim, completion, waking late), as it was measured.
    """

    jobs: Sequence[Job]
    slots: int
    outage: Outage
    overhead_seconds: float = 0.0
    limiter: Limiter | None = None


@dataclass(frozen=True)
class Replay:
    """The run as its parts would have done it, beside the run as it was."""

    path: Path
    measured_seconds: float | None  # None: the run ended before its backlog was gone
    replayed_seconds: float | None
    sampling_seconds: float  # how far apart the samples were from which the measured time was read

    @property
    def residual(self) -> float | None:
        """(measured − replayed)/replayed; None when either never ended or there was no backlog to speak of."""
        if self.measured_seconds is None or not self.replayed_seconds:
            return None
        return (self.measured_seconds - self.replayed_seconds) / self.replayed_seconds

    @property
    def explained(self) -> bool | None:
        """Whether the parts explain the measured time: within 2 % and a sample. None: cannot be told."""
        if self.measured_seconds is None or self.replayed_seconds is None:
            return None
        allowed = TOLERANCE * self.replayed_seconds + self.sampling_seconds
        return abs(self.measured_seconds - self.replayed_seconds) <= allowed


def replay(trace: Trace, measured_seconds: float | None, sampling_seconds: float = 0.0) -> Replay:
    """Walk the trace, jobs in order of due time, and set it beside the measured drain."""
    path = walk_attempts(
        sorted(trace.jobs, key=lambda job: job.due_seconds),
        trace.slots,
        outages=(trace.outage,),
        limiter=trace.limiter,
        overhead_seconds=trace.overhead_seconds,
    )
    return Replay(path, measured_seconds, path.drain_seconds(), sampling_seconds)
