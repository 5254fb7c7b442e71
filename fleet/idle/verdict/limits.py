"""Where rest ends and use begins. Every figure can be set in a policy; the ones here are kept low, because a wrong stop costs more."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Limits:
    """Percent is 0-100, ratios 0-1, rates bytes a second.

    What is at or above a limit is use. `floor_ratio`: how far above its rest a GPU's power may be. `settling`: how long after a start, a new
    image or a change of its clock a machine's rest proves nothing. `session_hours`: how long an open SSH session counts as use when
    nothing else happens: one that somebody forgot must not keep a machine for days. `cpu_cores`: one process at work is 15 % of a small machine
    and half a percent of a large one.
    """

    utilization_percent: float = 2.0
    sm_activity: float = 0.01
    tensor_activity: float = 0.005
    dram_activity: float = 0.02
    floor_ratio: float = 1.25
    cpu_percent: float = 15.0
    cpu_cores: float = 0.9
    disk_bytes_per_second: float = 2_000_000.0
    network_bytes_per_second: float = 1_000_000.0
    coverage: float = 0.9
    stale_after: timedelta = timedelta(seconds=60)
    settling: timedelta = timedelta(minutes=20)
    session_hours: float = 4.0
    # A GPU that says it is busy all the time and draws what it draws at rest waits for something that does not come.
    stalled_percent: float = 95.0
    stalled_power_ratio: float = 0.35

    def on(self, cores: float | None) -> Limits:
        """With the lower of both limits of the CPU, in percent of a machine that may use so many cores; None: nobody knows how many."""
        if not cores:
            return self
        return replace(self, cpu_percent=min(self.cpu_percent, round(100 * self.cpu_cores / cores, 2)))
