"""What counters stood at when a target was read last: pure, and kept as JSON between two scrapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAX_KEYS = 2_000


@dataclass(frozen=True, slots=True)
class Growth:
    """What counters grew by, in the order they were given, over `seconds`."""

    deltas: tuple[float, ...]
    seconds: float

    def per_second(self, position: int = 0) -> float:
        return self.deltas[position] / self.seconds


class History:
    """`stored`: what `to_json` gave at the last scrape, {} before the first. Times are epoch seconds on the server's clock."""

    def __init__(self, stored: Mapping[str, Any], *, at: float, longest_seconds: float) -> None:
        self._before: Mapping[str, Sequence[float]] = stored.get("counters", {})
        self._seconds = at - float(stored.get("at", at))
        self._longest_seconds = longest_seconds
        self.at = at
        self._now: dict[str, list[float]] = {}
        self.has_past = bool(stored)

    def growth(self, key: str, values: Sequence[float]) -> Growth | None:
        """None at the first reading, after a reset, and when the last reading is too old for a rate to be "now".

        A counter that went back was reset: nobody knows what happened in between, so the interval is unknown, not negative.
        """
        before = self.before(key)
        self.keep(key, values)
        if before is None or len(before) != len(values) or not 0 < self._seconds <= self._longest_seconds:
            return None
        deltas = tuple(new - old for new, old in zip(values, before, strict=True))
        return None if min(deltas) < 0 else Growth(deltas, self._seconds)

    def before(self, key: str) -> Sequence[float] | None:
        return self._before.get(key)

    def keep(self, key: str, values: Sequence[float]) -> None:
        if len(self._now) < MAX_KEYS:
            self._now[key] = list(values)

    def forget_the_past(self) -> None:
        """The machine was started anew: no counter goes on."""
        self._before = {}

    def to_json(self) -> dict[str, Any]:
        return {"at": self.at, "counters": self._now}
