"""What dryrun.js draws: windows against false stops, and when machines would have been off. Plain numbers; the script escapes names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.utils.translation import gettext as _

from fleet.formats import sign_of
from fleet.idle.dryrun.dry_run import DryRun, Ground, Totals, try_window
from fleet.idle.dryrun.words import minutes_text

COMPARED = (30, 60, 120, 360, 600)
MINUTE = timedelta(minutes=1)
# As many machines as rows of the chart can be read; those with most time off.
MOST_LANES = 12


def compared(ground: Ground, shown: DryRun, others: Sequence[int]) -> list[tuple[int, Totals]]:
    """The window shown beside some others, the shortest first."""
    here = round(shown.window / MINUTE)
    windows = sorted({*COMPARED, *others, here})
    return [
        (minutes, shown.totals if minutes == here else try_window(ground, timedelta(minutes=minutes)).totals)
        for minutes in windows
    ]


def windows_chart(shown: DryRun, points: Sequence[tuple[int, Totals]], recommended: int | None) -> dict[str, Any]:
    here = round(shown.window / MINUTE)
    return {
        "sign": sign_of(shown.ground.rates.currency),
        "windows": [_named(minutes, here, recommended) for minutes, _totals in points],
        "wrong": [totals.wrong for _minutes, totals in points],
        "money": [round(float(totals.net), 2) for _minutes, totals in points],
        "gpu": [round(totals.gpu_hours, 1) for _minutes, totals in points],
        "chosen": [minutes for minutes, _totals in points].index(here),
        "words": {
            "axis": _("false stops"),
            "window": _("window"),
            "gpu_hours": _("GPU-hours back"),
            "money": _("back"),
        },
    }


def _named(minutes: int, here: int, recommended: int | None) -> str:
    text = minutes_text(minutes)
    if minutes == recommended:
        return _("%(window)s, recommended") % {"window": text}
    return _("%(window)s, shown") % {"window": text} if minutes == here else text


def lanes_chart(shown: DryRun) -> dict[str, Any]:
    lanes = lanes_of(shown)
    numbers = {pk: number for number, pk in enumerate(lanes)}
    stops = [one.stop for one in shown.stops if one.stop.instance_id in lanes]
    return {
        "since": shown.ground.span.since.timestamp(),
        "until": shown.ground.span.until.timestamp(),
        "lanes": list(lanes.values()),
        "off": [
            [numbers[stop.instance_id], stop.at.timestamp(), stop.until.timestamp()]
            for stop in stops
            if not stop.is_wrong
        ],
        "hit": [[numbers[stop.instance_id], stop.at.timestamp(), stop.run] for stop in stops if stop.is_wrong],
        "words": {"off": _("off")},
    }


def lanes_of(shown: DryRun) -> dict[int, str]:
    """Names by machine, those that would have been off for longest."""
    hours: dict[int, float] = {}
    for one in shown.stops:
        hours[one.stop.instance_id] = hours.get(one.stop.instance_id, 0.0) + one.stop.gpu_hours
    most = sorted(hours, key=lambda pk: -hours[pk])[:MOST_LANES]
    return {pk: shown.ground.machines[pk].name for pk in most}
