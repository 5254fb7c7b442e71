"""Writes what happened to each machine on each day; today's row grows until the day is over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta

from django.conf import settings
from django.db.models import Max, Q

from fleet.inventory.models import Instance
from fleet.quality.health.reading import Place, Use, happenings_of, throttled_of, use_of
from fleet.quality.health.score import FAULTS, Happening, counts_of, day_score
from fleet.quality.models import HealthDay

BATCH = 200
DAY = timedelta(days=1)
# Of machines that were never counted; rollups of five minutes are many, and a few days of them say how a machine is cooled.
BACK_DAYS, BACK_THROTTLED_DAYS = 90, 7
FIELDS = ("provider", "gpu_hours", "counts", "throttled_seconds", "lost_seconds", "score")
NO_USE = Use(0.0, 0.0)


def count_health(*, now: datetime) -> int:
    """Idempotent. The days since the last count, the one before included: agents that were cut off tell late. Returns the rows written."""
    today = now.date()
    oldest = today - BACK_DAYS * DAY
    there = Instance.objects.filter(Q(gone_at=None) | Q(gone_at__date__gte=oldest)).select_related("account")
    machines = there.only("account__kind").order_by("pk")
    counted = set(HealthDay.objects.filter(day__gte=oldest).values_list("instance_id", flat=True).distinct())
    last = HealthDay.objects.aggregate(last=Max("day"))["last"] or oldest
    known = [one for one in machines if one.pk in counted]
    new = [one for one in machines if one.pk not in counted]
    written = 0
    for some, since in ((known, max(oldest, last - DAY)), (new, oldest)):
        for start in range(0, len(some), BATCH):
            written += _count(some[start : start + BATCH], since, today)
    return written


def _count(machines: Sequence[Instance], since: date, today: date) -> int:
    ids, until = [machine.pk for machine in machines], today + DAY
    use = use_of(ids, since=since, until=until)
    throttled = throttled_of(ids, since=max(since, today - BACK_THROTTLED_DAYS * DAY), until=until)
    happened = happenings_of(ids, since=since, until=until)
    providers = {machine.pk: machine.account.kind for machine in machines}
    rows = list(_rows(providers, use, throttled, happened))
    HealthDay.objects.bulk_create(
        rows, batch_size=1_000, update_conflicts=True, unique_fields=["instance", "day"], update_fields=FIELDS
    )
    return len(rows)


def _rows(
    providers: Mapping[int, str],
    use: Mapping[Place, Use],
    throttled: Mapping[Place, float],
    happened: Mapping[Place, Sequence[Happening]],
) -> Iterator[HealthDay]:
    """A day on which a machine was off and nothing happened has no row."""
    for place in sorted({place for place, one in use.items() if one.gpu_hours > 0} | happened.keys()):
        instance_id, day = place
        gpu_hours, lost_seconds = use.get(place, NO_USE)
        counts, held_back = counts_of(happened.get(place, ())), throttled.get(place, 0.0)
        yield HealthDay(
            instance_id=instance_id,
            provider=providers[instance_id],
            day=day,
            gpu_hours=gpu_hours,
            counts=counts,
            throttled_seconds=held_back,
            lost_seconds=lost_seconds,
            score=day_score(
                gpu_hours, faults=counts.get(FAULTS, 0), throttled_seconds=held_back, lost_seconds=lost_seconds
            ),
        )


def prune_health(*, now: datetime) -> int:
    """Kept as long as the hourly readings it was made from."""
    before = now.date() - settings.ROLLUP_1H_RETENTION_DAYS * DAY
    return HealthDay.objects.filter(day__lt=before).delete()[0]
