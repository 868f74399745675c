"""A recorded trace of arrivals: a text file with one time in seconds per line."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.contracts.problem import BadInput


def read_recorded(file: Path) -> NDArray[np.float64]:
    """Its times, sorted, from zero. Raises BadInput."""
    try:
        times = np.sort(np.array([float(word) for word in file.read_text(encoding="utf-8").split()]))
    except (OSError, ValueError) as error:
        raise BadInput(f"arrivals: {file}: not one time in seconds per line: {error}") from error
    if len(times) < 2 or not np.isfinite(times).all() or times[-1] <= times[0]:
        raise BadInput(f"arrivals: {file}: needs two different, finite times at least")
    since_first: NDArray[np.float64] = times - times[0]
    return since_first


def span_seconds(times: NDArray[np.float64]) -> float:
    """How long it lasts when it is repeated: the last gap before a repetition is a mean one."""
    return float(times[-1] + times[-1] / (len(times) - 1))
