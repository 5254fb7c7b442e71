"""Rates from two reads of kernel or driver counters."""

from __future__ import annotations


class Interval:
    """What counters grew by between two reads: ``deltas`` in the order of the values given, over ``seconds``."""

    __slots__ = ("deltas", "seconds")

    def __init__(self, seconds: float, deltas: tuple[float, ...]) -> None:
        self.seconds = seconds
        self.deltas = deltas

    def per_second(self, position: int) -> float:
        return self.deltas[position] / self.seconds


class CounterHistory:
    """Remembers the last read of each group of counters, on the monotonic clock of the caller."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, tuple[float, ...]]] = {}

    def interval(self, key: str, now: float, values: tuple[float, ...]) -> Interval | None:
        """The growth since the last read of ``key``; None at the first read and when any counter went back.

        A counter that went back was reset (module reload, device replaced): nobody knows what happened in between, so the
        whole interval is unknown, not negative and not a wrap.
        """
        last = self._last.get(key)
        self._last[key] = (now, values)
        if last is None or now <= last[0] or len(last[1]) != len(values):
            return None
        deltas = tuple(new - old for new, old in zip(values, last[1]))
        if any(delta < 0 for delta in deltas):
            return None
        return Interval(now - last[0], deltas)

    def forget_except(self, keys: set[str]) -> None:
        """Drop groups that were not seen in this round, so that a device that returns starts anew."""
        for key in [key for key in self._last if key not in keys]:
            del self._last[key]
