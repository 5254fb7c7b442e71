"""Writes the evidence of the last hours of every shared machine, and tells a person where it goes on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import Max

from fleet.inventory.models import Instance
from fleet.quality.models import NeighbourEvidence
from fleet.quality.neighbours.hours import Hour
from fleet.quality.neighbours.reading import SHARED, hosts_of, hours_of
from fleet.quality.neighbours.score import BASELINE, Host, Outcome, judge_hour
from fleet.telemetry.rollups.columns import HOUR
from fleet.telemetry.rollups.models import RollupProgress

# A week of hours of so many machines is read at once.
BATCH = 200
# What was not judged since, for want of a worker or because the machine is new; late samples may change the hour before.
CATCH_UP, AGAIN = timedelta(hours=24), timedelta(hours=2)
# Figures as people read them: sensors know no more.
DIGITS = 6


def newest_hour(now: datetime) -> datetime | None:
    """Where the last hour begins that is rolled up. None: nothing is."""
    reach = RollupProgress.objects.filter(resolution=HOUR.name).values_list("rolled_until", flat=True).first()
    return None if reach is None else min(HOUR.floor(reach), HOUR.floor(now)) - HOUR.width


def judge_neighbours(*, now: datetime) -> int:
    """Idempotent. Two readings a batch, however many hours are due. Returns how many hours were judged."""
    newest = newest_hour(now)
    if newest is None:
        return 0
    machines = list(Instance.objects.filter(gone_at=None, tenancy__in=SHARED).only("tenancy").order_by("pk"))
    return sum(_judge(machines[start : start + BATCH], newest) for start in range(0, len(machines), BATCH))


def _judge(machines: Sequence[Instance], newest: datetime) -> int:
    due = _due_from(machines, newest)
    since = min(due.values()) - BASELINE
    hours = hours_of([machine.pk for machine in machines], since=since, until=newest + HOUR.width)
    hosts = hosts_of(machines)
    rows = [
        row
        for machine in machines
        for row in _evidence(machine.pk, hours.get(machine.pk, []), hosts[machine.pk], due[machine.pk])
    ]
    _keep(rows)
    return len(rows)


def _due_from(machines: Sequence[Instance], newest: datetime) -> Mapping[int, datetime]:
    earliest = newest - CATCH_UP + HOUR.width
    judged = NeighbourEvidence.objects.filter(instance__in=machines, hour__gte=earliest)
    last = dict(judged.values("instance").annotate(last=Max("hour")).values_list("instance", "last"))
    return {one.pk: max(earliest, last[one.pk] - AGAIN) if one.pk in last else earliest for one in machines}


def _evidence(instance_id: int, hours: Sequence[Hour], host: Host, since: datetime) -> Iterator[NeighbourEvidence]:
    for place, hour in enumerate(hours):
        if hour.at >= since:
            found = judge_hour(hour, hours[:place], host)
            if found.score is not None:
                yield NeighbourEvidence(
                    instance_id=instance_id, hour=hour.at, score=found.score, reasons=reasons_of(found)
                )


def reasons_of(found: Outcome) -> list[dict[str, str | float]]:
    return [
        {"code": one.code, "before": round(one.before, DIGITS), "now": round(one.now, DIGITS)} for one in found.reasons
    ]


@transaction.atomic
def _keep(rows: Sequence[NeighbourEvidence]) -> None:
    NeighbourEvidence.objects.bulk_create(
        rows,
        batch_size=1_000,
        update_conflicts=True,
        unique_fields=["instance", "hour"],
        update_fields=["score", "reasons"],
    )


def prune_evidence(*, now: datetime) -> int:
    """Kept as long as the hourly readings it was made from."""
    before = now - timedelta(days=settings.ROLLUP_1H_RETENTION_DAYS)
    return NeighbourEvidence.objects.filter(hour__lt=before).delete()[0]
