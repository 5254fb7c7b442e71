"""Wall clock and a clock that no one sets."""

from __future__ import annotations

import time


def steady_seconds() -> float:
    """Seconds since boot, time asleep included: NTP and people move the wall clock, never this one."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def wall_offset() -> float:
    """What to add to ``steady_seconds`` for the wall clock as it is set now."""
    return time.time() - steady_seconds()
