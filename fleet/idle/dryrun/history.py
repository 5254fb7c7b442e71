"""What machines did over the last days: their quiet times, out of recorded readings, listings, holds and requests. Eight queries, however many machines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter

from django.db.models import Q

from fleet.idle.dryrun.evidence import Held, Known, Power
from fleet.idle.dryrun.quiet import History, history_of
from fleet.idle.dryrun.readings import Card, Range, buckets_of
from fleet.idle.policies.covering import JudgedBy
from fleet.idle.watch.models import GpuFloor
from fleet.inventory.models import GPU, EnvironmentReport, Hold, Instance, Observation
from fleet.providers.base import InstanceState
from fleet.telemetry.models import MachineEvent
from fleet.telemetry.rollups.columns import FIVE_MINUTES
from fleet.telemetry.rollups.models import RollupProgress

OFF = frozenset({InstanceState.STOPPED, InstanceState.TERMINATED})


def recorded_until(now: datetime) -> datetime:
    """As far as five minutes are rolled up."""
    reached = RollupProgress.objects.filter(resolution=FIVE_MINUTES.name).values_list("rolled_until", flat=True).first()
    return FIVE_MINUTES.floor(min(now, reached or now))


def histories_of(
    machines: Sequence[Instance], ways: Mapping[int, JudgedBy], *, days: int, now: datetime
) -> list[History]:
    """Of each machine, in the order of their ids; one of which nothing is recorded has an empty history. `ways`: how each is judged."""
    until = recorded_until(now)
    span = Range(FIVE_MINUTES.floor(until - timedelta(days=days)), until)
    ids = [machine.pk for machine in machines]
    gpus = gpus_of(ids)
    known = known_of(machines, ways, gpus, span)
    found = {}
    for pk, buckets in groupby(buckets_of(cards_of(gpus), span), key=attrgetter("instance_id")):
        found[pk] = history_of(known[pk], buckets, limits=ways[pk].limits, until=until)
    return [found.get(pk) or History(pk, known[pk].gpus) for pk in sorted(ids)]


def gpus_of(instance_ids: Sequence[int]) -> list[GPU]:
    return list(GPU.objects.filter(instance__in=instance_ids).select_related("floor").order_by("instance_id", "pk"))


def cards_of(gpus: Sequence[GPU]) -> list[Card]:
    cut = {(gpu.instance_id, gpu.mig_parent_uuid) for gpu in gpus if gpu.mig_parent_uuid}
    return [Card(gpu.pk, gpu.instance_id, *floors_of(gpu), is_cut=(gpu.instance_id, gpu.uuid) in cut) for gpu in gpus]


def floors_of(gpu: GPU) -> tuple[float | None, float | None]:
    """What it draws at rest, and at rest with memory held; the same where the latter was never seen."""
    floor: GpuFloor | None = getattr(gpu, "floor", None)
    if floor is None:
        return None, None
    return floor.watts, floor.held_watts if floor.held_watts is not None else floor.watts


def expected_of(machine: Instance, gpus: Sequence[GPU]) -> int | None:
    """How many parts would have a record if all rented cards had: of a card that is cut, its MIG instances. None: nobody knows how many are rented."""
    if machine.gpu_count is None:
        return None
    here = [gpu for gpu in gpus if gpu.removed_at is None]
    cut = {gpu.mig_parent_uuid for gpu in here if gpu.mig_parent_uuid}
    parts = [gpu for gpu in here if gpu.uuid not in cut]
    return machine.gpu_count + len(parts) - len({gpu.mig_parent_uuid or gpu.uuid for gpu in here})


def known_of(
    machines: Sequence[Instance], ways: Mapping[int, JudgedBy], gpus: Sequence[GPU], span: Range
) -> dict[int, Known]:
    ids = [machine.pk for machine in machines]
    powers, holds, changes = powers_of(ids, span), holds_of(ids, span), changes_of(ids, span)
    own: dict[int, list[GPU]] = defaultdict(list)
    for gpu in gpus:
        own[gpu.instance_id].append(gpu)
    return {
        machine.pk: Known(
            machine.pk,
            machine.gpu_count or 0,
            expected_of(machine, own[machine.pk]),
            ways[machine.pk].mode,
            powers.get(machine.pk, ()),
            holds.get(machine.pk, ()),
            sorted(changes.get(machine.pk, ())),
        )
        for machine in machines
    }


def powers_of(instance_ids: Sequence[int], span: Range) -> dict[int, list[Power]]:
    """What listings showed, from before the span on. Two queries."""
    rows = Observation.objects.filter(instance__in=instance_ids)
    before = rows.filter(seen_at__lte=span.since).order_by("instance_id", "-seen_at", "-pk").distinct("instance_id")
    within = rows.filter(seen_at__gt=span.since, seen_at__lt=span.until).order_by("instance_id", "seen_at", "pk")
    seen: dict[int, list[Observation]] = defaultdict(list)
    for row in [*before, *within]:
        seen[row.instance_id].append(row)
    return {pk: powers_in(some) for pk, some in seen.items()}


def powers_in(rows: Sequence[Observation]) -> list[Power]:
    """A list that did not name the machine says nothing of its power."""
    found: list[Power] = []
    for row in rows:
        powered = powered_in(row)
        before = found[-1] if found else None
        went_on = before is not None and before.powered is not False
        started_at = row.provider_started_at or (before.started_at if went_on and before else row.seen_at)
        if before is None or (before.powered, before.started_at) != (powered, started_at):
            found.append(Power(row.seen_at, powered, started_at))
    return found


def powered_in(row: Observation) -> bool | None:
    if row.state in OFF:
        return False
    return True if row.listed and row.state == InstanceState.RUNNING else None


def holds_of(instance_ids: Sequence[int], span: Range) -> dict[int, list[Held]]:
    rows = Hold.objects.filter(instance__in=instance_ids, started_at__lt=span.until)
    rows = rows.filter(Q(ended_at=None) | Q(ended_at__gt=span.since), Q(expires_at=None) | Q(expires_at__gt=span.since))
    found: dict[int, list[Held]] = defaultdict(list)
    for machine, kind, start, ended, expires, reason in rows.order_by("started_at").values_list(
        "instance_id", "kind", "started_at", "ended_at", "expires_at", "reason"
    ):
        end = min((at for at in (ended, expires) if at is not None), default=None)
        found[machine].append(Held(kind, start, end, reason))
    return found


def changes_of(instance_ids: Sequence[int], span: Range) -> dict[int, list[datetime]]:
    """When a machine's agent began, or found other software: a boot, another image, another driver. Two queries."""
    reports = EnvironmentReport.objects.filter(instance__in=instance_ids, reported_at__range=(span.since, span.until))
    begins = MachineEvent.objects.filter(
        instance__in=instance_ids, kind="agent_started", at__range=(span.since, span.until)
    )
    found: dict[int, list[datetime]] = defaultdict(list)
    for pk, at in [*reports.values_list("instance_id", "reported_at"), *begins.values_list("instance_id", "at")]:
        found[pk].append(at)
    return found
