"""How fast a narrow line is: a token bucket, kept as one moment of time so that nothing is lost to rounding."""

BURST_SECONDS = 0.05


class TokenBucket:
    """Earns ``bytes_per_second`` and saves up ``burst_bytes``; everybody on the line draws from it.

    In any time of t seconds at most ``bytes_per_second * t + burst_bytes`` pass, if each waits until its bytes are earned.
    """

    __slots__ = ("_full_at", "burst_bytes", "bytes_per_second")

    def __init__(self, bytes_per_second: float) -> None:
        if bytes_per_second <= 0:
            raise ValueError(f"bytes_per_second {bytes_per_second:g}: a line with no width is a cut")
        self.bytes_per_second = bytes_per_second
        self.burst_bytes = max(1, int(bytes_per_second * BURST_SECONDS))
        self._full_at = float("-inf")  # when it will have saved all that it can

    def take(self, size: int, now: float) -> float:
        """Draw so many bytes, on credit if need be. Returns the moment when they are earned, ``now`` or earlier for at once."""
        self._full_at = max(self._full_at, now) + size / self.bytes_per_second
        return self._full_at - self.burst_bytes / self.bytes_per_second
