"""Advice as a policy keeps it: JSON-ready, figures rounded to what is shown. Pure."""

from __future__ import annotations

from typing import Any

from fleet.idle.dryrun.advice import Advice, OwnWindow
from fleet.idle.dryrun.costs import WrongStop


def plain(advice: Advice, *, cost: WrongStop, days: int) -> dict[str, Any]:
    return {
        "minutes": advice.minutes,
        "best": advice.best,
        "why": advice.why.value if advice.why else "",
        "days": days,
        "learned_days": advice.learned_days,
        "unseen_days": advice.unseen_days,
        "stops": advice.unseen.stops,
        "wrong": advice.unseen.wrong,
        "back": hours(advice.unseen.back),
        "net": hours(advice.unseen.net),
        "idle": hours(advice.idle),
        "interval": [hours(value) for value in advice.interval],
        "machines_net": None if advice.machines is None else hours(advice.machines.net),
        "cost": {"gpu_hours": cost.gpu_hours, "restart_minutes": cost.restart_minutes},
        "own": {str(one.instance_id): own(one) for one in advice.own},
    }


def own(one: OwnWindow) -> dict[str, Any]:
    return {"minutes": one.minutes, "net": hours(one.net), "group_net": hours(one.group_net)}


def hours(value: float) -> float:
    return round(value, 1) + 0.0
