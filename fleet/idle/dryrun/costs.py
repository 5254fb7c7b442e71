"""What a wrong stop costs, as a team says it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from fleet.idle.backtest.recommend import PRESETS

RESTART = "restart"
OWN = "own"


@dataclass(frozen=True, slots=True)
class WrongStop:
    """GPU-hours of each, or, where those are None, `restart_minutes` of all GPUs of the machine."""

    gpu_hours: float | None = None
    restart_minutes: float = 20.0

    def of(self, gpus: float) -> float:
        """GPU-hours."""
        return self.restart_minutes / 60 * gpus if self.gpu_hours is None else self.gpu_hours

    @property
    def preset(self) -> str:
        """How people chose it: a preset, the time of a restart, or a figure of their own."""
        if self.gpu_hours is None:
            return RESTART
        return next((name for name, hours in PRESETS.items() if hours == self.gpu_hours), OWN)
