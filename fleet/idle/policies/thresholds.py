"""Thresholds of a policy, as JSON keeps them: the fields of Limits that differ from their defaults, times in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from fleet.idle.verdict.limits import Limits

DEFAULTS = Limits()


@dataclass(frozen=True, slots=True)
class Threshold:
    """A field of Limits. `low` and `high` are what it may be, in its own unit; people type it in `unit`, of which `scale` is one."""

    name: str
    label: str | Promise
    unit: str | Promise
    low: float
    high: float
    scale: float = 1.0

    @property
    def default(self) -> float:
        return plain(getattr(DEFAULTS, self.name))

    def typed(self, kept: float) -> float:
        return round(kept / self.scale, 6)

    def kept(self, typed: float) -> float:
        return round(typed * self.scale, 9)


# Nothing may be zero that use is "at or above": a machine would be in use for ever.
THRESHOLDS = (
    Threshold("utilization_percent", _("GPU utilization"), "%", 0.1, 100),
    Threshold("sm_activity", _("SM activity"), "%", 0.001, 1, 0.01),
    Threshold("tensor_activity", _("Tensor activity"), "%", 0.001, 1, 0.01),
    Threshold("dram_activity", _("Memory activity"), "%", 0.001, 1, 0.01),
    Threshold("floor_ratio", _("Power, of what the GPU draws at rest"), "%", 1.01, 5, 0.01),
    Threshold("cpu_percent", pgettext_lazy("threshold", "CPU"), "%", 0.1, 100),
    Threshold("cpu_cores", _("or CPU cores at work, but for serving"), pgettext_lazy("unit", "cores"), 0.05, 1024),
    Threshold("disk_bytes_per_second", _("Disk traffic"), "MB/s", 1_000, 1e11, 1e6),
    Threshold("network_bytes_per_second", _("Network traffic"), "MB/s", 1_000, 1e11, 1e6),
    Threshold("session_hours", _("An open SSH session alone counts for"), pgettext_lazy("unit", "h"), 0, 168),
    Threshold("coverage", _("Share of readings that must be there"), "%", 0.5, 1, 0.01),
    Threshold("stale_after", _("The newest reading is at most this old"), pgettext_lazy("unit", "s"), 15, 600),
    Threshold("settling", _("Nothing is proved after a start for"), pgettext_lazy("unit", "min"), 0, 86_400, 60),
    Threshold("stalled_percent", _("Stalled: utilization that never falls below"), "%", 50, 100),
    Threshold("stalled_power_ratio", _("Stalled: with less power, of its limit, than"), "%", 0.05, 0.9, 0.01),
)
BY_NAME = {threshold.name: threshold for threshold in THRESHOLDS}


def limits_of(kept: Mapping[str, Any]) -> Limits:
    """Raises TypeError for a name that is no threshold: a policy that was meant to be careful must not be judged by defaults."""
    return Limits(**{name: _value(name, value) for name, value in kept.items()})


def differing(kept: Mapping[str, float]) -> dict[str, float]:
    """Without what is the default anyway, so that a better default reaches those who said nothing else."""
    return {name: float(value) for name, value in kept.items() if value != BY_NAME[name].default}


def plain(value: float | timedelta) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _value(name: str, value: Any) -> Any:
    default = getattr(DEFAULTS, name, None)
    return timedelta(seconds=float(value)) if isinstance(default, timedelta) else float(value)
