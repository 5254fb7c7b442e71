"""Once a minute: whose processes are on the GPUs of machines that are split by measured use."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection, transaction

from fleet.costs.attribution.hours import hour_of
from fleet.costs.attribution.models import UNIX_NAME_LENGTH, AttributionSpan, MeasuredHour, SplitMode
from fleet.costs.attribution.sync import lock_attribution
from fleet.costs.attribution.use import Process, users_of
from fleet.teams.models import Team
from fleet.telemetry.models import GpuLatest

# A reading that is older says nothing of the present minute.
FRESH = timedelta(minutes=2)
EVERY = timedelta(minutes=1)
# Two looks that come closer together are one.
SOON = timedelta(seconds=30)


@dataclass(slots=True)
class Look:
    """What one look at a machine counts, in GPU-seconds: all that was looked at, and by user."""

    seconds: float
    looked_at: float = 0.0
    by_user: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def add(self, processes: Sequence[Process]) -> None:
        self.looked_at += self.seconds
        for user, part in users_of(processes).items():
            self.by_user[user[:UNIX_NAME_LENGTH]] += part * self.seconds


@transaction.atomic
def sample_use(*, team: Team, now: datetime) -> int:
    """Adds what is seen now to the hour that it is about. Returns at how many machines was looked."""
    lock_attribution(team)
    looks = look_at(measured_machines(team), now=now)
    for machine, look in looks.items():
        # It is about the time before it: the first look of an hour is about the hour before.
        add_look(machine, hour_of(now - timedelta(seconds=look.seconds / 2)), look, now=now)
    return len(looks)


def measured_machines(team: Team) -> list[int]:
    spans = AttributionSpan.objects.filter(
        instance__team=team, instance__gone_at=None, period__upper_inf=True, split=SplitMode.MEASURED
    )
    return list(spans.values_list("instance_id", flat=True))


def look_at(machines: Sequence[int], *, now: datetime) -> dict[int, Look]:
    seconds = since_last(machines, now=now)
    looks: dict[int, Look] = {}
    for machine, processes in fresh_processes(list(seconds), now=now):
        looks.setdefault(machine, Look(seconds[machine])).add(processes)
    return looks


def since_last(machines: Iterable[int], *, now: datetime) -> dict[int, float]:
    """For how long a look at each machine stands; those that were looked at just now are left out."""
    newest: Mapping[int, datetime] = dict(
        MeasuredHour.objects.filter(instance__in=machines)
        .order_by("instance", "-hour")
        .distinct("instance")
        .values_list("instance_id", "sampled_at")
    )
    passed = {machine: min(now - newest.get(machine, now - EVERY), FRESH) for machine in machines}
    return {machine: time.total_seconds() for machine, time in passed.items() if time >= SOON}


def fresh_processes(machines: Sequence[int], *, now: datetime) -> list[tuple[int, Sequence[Process]]]:
    """Of each GPU; of cards that are cut into MIG instances, of these instead."""
    rows = GpuLatest.objects.filter(
        gpu__instance__in=machines, gpu__removed_at=None, sampled_at__gt=now - FRESH, sampled_at__lte=now + FRESH, lost=False
    ).values_list("gpu__instance_id", "gpu__uuid", "gpu__mig_parent_uuid", "processes")  # fmt: skip
    found = list(rows)
    cut = {(machine, parent) for machine, _uuid, parent, _processes in found if parent}
    return [(machine, processes) for machine, uuid, _parent, processes in found if (machine, uuid) not in cut]


_ADD_HOUR = """
INSERT INTO measured_hour AS old (instance_id, hour, gpu_seconds, sampled_at) VALUES (%s, %s, %s, %s)
ON CONFLICT (instance_id, hour) DO UPDATE SET gpu_seconds = old.gpu_seconds + excluded.gpu_seconds, sampled_at = excluded.sampled_at
"""
_ADD_USE = """
INSERT INTO unix_use AS old (instance_id, hour, unix_user, gpu_seconds) VALUES (%s, %s, %s, %s)
ON CONFLICT (instance_id, hour, unix_user) DO UPDATE SET gpu_seconds = old.gpu_seconds + excluded.gpu_seconds
"""


def add_look(machine: int, hour: datetime, look: Look, *, now: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_ADD_HOUR, [machine, hour, look.looked_at, now])
        cursor.executemany(_ADD_USE, [(machine, hour, user, seconds) for user, seconds in look.by_user.items()])
