"""The agent watches its own cost: where it takes too much of a CPU, it measures less often."""

from __future__ import annotations

import logging

log = logging.getLogger("rackrent.supervisor")

_TOO_MUCH_PERCENT = 5.0
_LITTLE_PERCENT = 1.0
_MOST_FACTOR = 8
# Heartbeats in a row, at 15 s each: one busy minute is enough to slow down, ten quiet ones to speed up again
_BEFORE_SLOWER, _BEFORE_FASTER = 4, 40


class Thrift:
    """``factor`` multiplies the sampling interval: 1, 2, 4 or 8."""

    def __init__(self) -> None:
        self.factor = 1
        self._high = 0
        self._low = 0

    def learn(self, cpu_percent: float) -> None:
        """One measured value, of one core."""
        self._high = self._high + 1 if cpu_percent > _TOO_MUCH_PERCENT else 0
        self._low = self._low + 1 if cpu_percent < _LITTLE_PERCENT else 0
        if self._high >= _BEFORE_SLOWER and self.factor < _MOST_FACTOR:
            self._change(self.factor * 2, cpu_percent)
        elif self._low >= _BEFORE_FASTER and self.factor > 1:
            self._change(self.factor // 2, cpu_percent)

    def _change(self, factor: int, cpu_percent: float) -> None:
        log.warning("this agent uses %.1f %% of a core: it now measures at %d times the interval", cpu_percent, factor)
        self.factor, self._high, self._low = factor, 0, 0
