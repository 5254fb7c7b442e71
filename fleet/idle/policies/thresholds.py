"""Thresholds of a policy, as JSON keeps them: the fields of Limits that differ from their defaults, times in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from fleet.idle.verdict.limits import Limits

DEFAULTS = Limits()
NAMES = tuple(field.name for field in fields(Limits))


def limits_of(kept: Mapping[str, Any]) -> Limits:
    """Raises TypeError for a name that is no threshold: a policy that was meant to be careful must not be judged by defaults."""
    return Limits(**{name: _value(name, value) for name, value in kept.items()})


def kept_of(limits: Limits) -> dict[str, float]:
    """JSON-ready: only what differs from the defaults."""
    pairs = ((name, getattr(limits, name)) for name in NAMES)
    return {name: plain(value) for name, value in pairs if value != getattr(DEFAULTS, name)}


def plain(value: float | timedelta) -> float:
    return value.total_seconds() if isinstance(value, timedelta) else float(value)


def _value(name: str, value: Any) -> Any:
    default = getattr(DEFAULTS, name, None)
    return timedelta(seconds=float(value)) if isinstance(default, timedelta) else float(value)
