"""Alerts about hosts that stay crowded: opened, kept up to date and cleared by the evidence of the last day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.findings import NOTE, WARNING, instance_subject
from fleet.alerts.models import Alert
from fleet.inventory.models import Instance
from fleet.quality.models import NeighbourEvidence
from fleet.quality.neighbours.judging import newest_hour
from fleet.quality.neighbours.standing import SILENT_FOR, Now, Standing, standing

CAUSE, SIGNAL = "machine.noisy_neighbour", "noisy_neighbour"
# Why an alert ends, in the alerts' own words.
OVER = {Now.CALM: "evidence", Now.SILENT: "silent"}
# What an alert names of its reasons.
TOLD_REASONS = 3

Scores = Mapping[int, dict[datetime, NeighbourEvidence]]


def tell_of_neighbours(*, now: datetime) -> int:
    """Idempotent. Returns how many alerts are open after it."""
    newest = newest_hour(now)
    if newest is None:
        return 0
    rows = _rows(newest)
    is_open = set(Alert.objects.filter(cause=CAUSE, closed_at=None).values_list("instance_id", flat=True))
    machines = Instance.objects.filter(pk__in=[*rows, *(pk for pk in is_open if pk)]).select_related("team")
    return sum(
        _tell(machine, rows[machine.pk], newest, now, is_open=machine.pk in is_open)
        for machine in machines.order_by("pk")
    )


def _rows(newest: datetime) -> Scores:
    found: dict[int, dict[datetime, NeighbourEvidence]] = defaultdict(dict)
    rows = NeighbourEvidence.objects.filter(hour__gt=newest - SILENT_FOR, hour__lte=newest, instance__gone_at=None)
    for row in rows:
        found[row.instance_id][row.hour] = row
    return found


def _tell(
    machine: Instance, rows: Mapping[datetime, NeighbourEvidence], newest: datetime, now: datetime, *, is_open: bool
) -> bool:
    found = standing({hour: row.score for hour, row in rows.items()}, newest=newest)
    if found.now is Now.CROWDED:
        _raise(machine, found, rows[newest], now)
        return True
    why = "gone" if machine.gone_at else OVER.get(found.now)
    if is_open and why:
        clear_event(team=machine.team, cause=CAUSE, subject=instance_subject(machine.pk), now=now, why=why)
    return is_open and not why


def _raise(machine: Instance, found: Standing, row: NeighbourEvidence, now: datetime) -> None:
    raise_event(
        team=machine.team,
        cause=CAUSE,
        subject=instance_subject(machine.pk),
        severity=WARNING if found.is_loud else NOTE,
        now=now,
        instance=machine,
        values={"score": found.mean, "hours": found.hours, "reasons": row.reasons[:TOLD_REASONS]},
        signal=SIGNAL,
        since=found.since,
    )
