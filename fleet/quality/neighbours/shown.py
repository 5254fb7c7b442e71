"""What a machine's page says of other tenants: the last day as bars, and the newest hour with its signs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.http import HttpRequest
from django.utils import timezone

from fleet.inventory.models import Instance
from fleet.panels import Context
from fleet.quality.models import NeighbourEvidence
from fleet.quality.neighbours.judging import newest_hour
from fleet.quality.neighbours.reading import hosts_of, hours_of, is_shared
from fleet.quality.neighbours.score import BASELINE, CALM_AT, FLAGGED_AT, judge_hour
from fleet.quality.neighbours.words import WHY_NOT, level_text, reason_text
from fleet.telemetry.rollups.columns import HOUR

SHOWN_HOURS = 24


@dataclass(frozen=True, slots=True)
class Bar:
    """`score` None: the hour was not judged."""

    at: datetime
    score: int | None

    @property
    def level(self) -> str:
        if self.score is None:
            return ""
        return "bad" if self.score >= FLAGGED_AT else "worn" if self.score >= CALM_AT else "sound"


def neighbours_context(_request: HttpRequest, instance: Instance) -> Context | None:
    """None where no other tenant can be blamed, or nothing was ever rolled up."""
    newest = newest_hour(timezone.now()) if is_shared(instance.tenancy) else None
    if newest is None:
        return None
    since = newest - timedelta(hours=SHOWN_HOURS - 1)
    rows = {row.hour: row for row in NeighbourEvidence.objects.filter(instance=instance, hour__range=(since, newest))}
    hours = [since + number * HOUR.width for number in range(SHOWN_HOURS)]
    row = rows.get(newest)
    return {
        "bars": [Bar(hour, rows[hour].score if hour in rows else None) for hour in hours],
        "judged": len(rows),
        "row": row,
        "until": newest + HOUR.width,
        "says": level_text(row.score) if row else why_not(instance, newest),
        "reasons": [reason_text(reason) for reason in row.reasons] if row else [],
    }


def why_not(instance: Instance, newest: datetime) -> str:
    """Why the newest hour has no score."""
    found = hours_of([instance.pk], since=newest - BASELINE, until=newest + HOUR.width).get(instance.pk, [])
    if not found or found[-1].at != newest:
        return str(WHY_NOT["not_measured"])
    outcome = judge_hour(found[-1], found[:-1], hosts_of([instance])[instance.pk])
    # Its row is written within the hour.
    return (
        str(WHY_NOT.get(outcome.why, WHY_NOT["not_measured"])) if outcome.score is None else level_text(outcome.score)
    )
