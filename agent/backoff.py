"""How long to wait before the next try."""

from __future__ import annotations

import os


class Backoff:
    """Doubling waits with jitter, so that a thousand agents do not return to a restarted server in the same second."""

    def __init__(self, *, first_seconds: float, most_seconds: float) -> None:
        self._first = first_seconds
        self._most = most_seconds
        self._failures = 0

    def next_seconds(self) -> float:
        """Between half and all of the doubled wait."""
        whole = min(self._most, self._first * 2.0 ** min(self._failures, 30))
        self._failures += 1
        return whole * _between(0.5, 1.0)

    def reset(self) -> None:
        self._failures = 0


def jittered(seconds: float) -> float:
    """``seconds`` and up to a quarter more: never before the time that a server asked for."""
    return seconds * _between(1.0, 1.25)


def _between(low: float, high: float) -> float:
    """Evenly spread. From the system's generator: the random module would cost a MiB of memory for two lines."""
    return low + (high - low) * (int.from_bytes(os.urandom(4), "big") / 2.0**32)
