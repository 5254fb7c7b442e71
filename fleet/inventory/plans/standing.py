"""Whether what was planned is still meant. It is asked right before an act: whoever planned it may have been down as long as whoever carries it out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from fleet.inventory.plans.models import PlannedAction
from fleet.inventory.plans.reasons import kind_of

Stands = Callable[[PlannedAction, datetime], bool]
_asked: dict[str, Stands] = {}


def register_standing(kind: str, stands: Stands) -> None:
    """`kind`: what a source begins with, "budget" of "budget:7". What nobody registered for stands until it is called off."""
    if kind in _asked:
        raise ValueError(f"Whether {kind!r} stands is asked already")
    _asked[kind] = stands


def still_stands(action: PlannedAction, now: datetime) -> bool:
    stands = _asked.get(kind_of(action.source))
    return stands is None or stands(action, now)
