"""Which machines a schedule is of, and the clock that it goes by."""

from __future__ import annotations

from datetime import time
from zoneinfo import ZoneInfo

from django.db.models import Exists, OuterRef, Q

from fleet.costs.attribution.models import AttributionSpan
from fleet.idle.schedules.edges import Clock
from fleet.idle.schedules.models import PowerSchedule
from fleet.inventory.adapters import can
from fleet.inventory.models import Instance
from fleet.providers.base import Capability


def clock_of(schedule: PowerSchedule) -> Clock:
    return Clock(
        frozenset(schedule.days),
        _time(schedule.start_at),
        _time(schedule.stop_at),
        zone_of(schedule),
        schedule.holidays,
    )


def zone_of(schedule: PowerSchedule) -> ZoneInfo:
    return ZoneInfo(schedule.time_zone or schedule.team.time_zone)


def _time(value: time | str | None) -> time | None:
    """A row that was just written still has what was given to it."""
    return time.fromisoformat(value) if isinstance(value, str) else value


def machines_of(schedule: PowerSchedule) -> list[Instance]:
    """Those named, else all of the project or with the label; what nobody registered is never touched. Two queries."""
    rows = Instance.objects.filter(team=schedule.team_id, gone_at=None, managed=True)
    rows = rows.select_related("account", "team", "owner").order_by("name", "pk")
    named = list(schedule.machines.values_list("pk", flat=True))
    if named:
        return list(rows.filter(pk__in=named))
    if schedule.project_id is None and not schedule.label_name:
        return []
    if schedule.project_id is not None:
        spans = AttributionSpan.objects.filter(
            instance=OuterRef("pk"), period__upper_inf=True, project=schedule.project_id
        )
        rows = rows.filter(Q(project=schedule.project_id) | Q(Exists(spans), project=None))
    return [machine for machine in rows if has_label(schedule, machine)]


def has_label(schedule: PowerSchedule, machine: Instance) -> bool:
    """People's labels outweigh the provider's of the same name."""
    if not schedule.label_name:
        return True
    value = {**machine.provider_labels, **machine.labels}.get(schedule.label_name)
    return value is not None and schedule.label_value in ("", str(value))


def may(machine: Instance, turn: str) -> bool:
    """Whether its account may do that to it, and its provider can."""
    account = machine.account
    acts = not account.monitor_only and account.enabled and account.disconnected_at is None
    return acts and can(account, Capability.START if turn == "start" else Capability.STOP)
