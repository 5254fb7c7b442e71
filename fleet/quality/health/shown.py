"""The last month of a machine as a strip of days, and what providers' machines went through."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.formats import date_format

from fleet.inventory.models import Instance
from fleet.inventory.offers.places import provider_label
from fleet.panels import Context
from fleet.quality.health.providers import WINDOW, Fared, fared
from fleet.quality.health.score import FAULTS, HOURS_A_DAY, LEAST_GPU_DAYS, Sums
from fleet.quality.health.words import counts_text, fared_text, faults_text, lasting_text
from fleet.quality.models import HealthDay
from fleet.teams.access import TeamRequest

SHOWN_DAYS = 30
SOUND, WORN = 90, 60


@dataclass(frozen=True, slots=True)
class Day:
    """`level`: "sound", "worn", "bad", or "" where too little is known. `says` is the whole of it in words."""

    day: date
    level: str
    says: str


def health_context(_request: HttpRequest, instance: Instance) -> Context | None:
    """None for a machine of which no day is counted yet."""
    today = timezone.now().date()
    since = today - timedelta(days=SHOWN_DAYS - 1)
    rows = list(HealthDay.objects.filter(instance=instance, day__gte=since).order_by("day"))
    if not rows:
        return None
    sums = sums_of(rows)
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update(row.counts)
    return {
        "days": days_of(rows, since),
        "since": since,
        "said": fared_text(sums),
        "counts": counts_text(counts),
        "lasting": lasting_text(sums.throttled_seconds, sums.lost_seconds),
        "is_sound": not sums.faults,
    }


def sums_of(rows: Sequence[HealthDay]) -> Sums:
    return Sums(
        sum(row.gpu_hours for row in rows) / HOURS_A_DAY,
        sum(row.counts.get(FAULTS, 0) for row in rows),
        sum(row.throttled_seconds for row in rows),
        sum(row.lost_seconds for row in rows),
    )


def days_of(rows: Sequence[HealthDay], since: date) -> list[Day]:
    by_day = {row.day: row for row in rows}
    days = [since + timedelta(days=number) for number in range(SHOWN_DAYS)]
    return [Day(day, level_of(by_day.get(day)), says_of(day, by_day.get(day))) for day in days]


def level_of(row: HealthDay | None) -> str:
    if row is None or row.score is None:
        return ""
    return "sound" if row.score >= SOUND else "worn" if row.score >= WORN else "bad"


def says_of(day: date, row: HealthDay | None) -> str:
    name = date_format(day, "j M")
    if row is None:
        return name
    told = [faults_text(row.counts.get(FAULTS, 0)), counts_text(row.counts)]
    told.append(lasting_text(row.throttled_seconds, row.lost_seconds))
    return f"{name}: " + ", ".join(part for part in told if part)


def providers_context(request: TeamRequest) -> Context | None:
    now = timezone.now()
    rows = [provider_row(one) for one in fared(now=now, team_ids=[request.team.pk])]
    return {"rows": rows, "days": WINDOW.days, "least": round(LEAST_GPU_DAYS)} if rows else None


def provider_row(one: Fared) -> dict[str, Any]:
    return {
        "label": provider_label(one.provider),
        "machines": one.machines,
        "said": fared_text(one.sums),
        "lasting": lasting_text(one.sums.throttled_seconds, one.sums.lost_seconds),
        "stars": one.stars,
    }
