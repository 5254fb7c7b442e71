"""How people make, change and remove schedules. What one planned before a change is called off; edges before it are none of the changed one's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime, time
from typing import Any
from zoneinfo import available_timezones

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from fleet.idle.hours import UnknownCalendar, normal_code
from fleet.idle.schedules.models import PowerSchedule
from fleet.idle.schedules.planning import drop_plans
from fleet.inventory.models import Instance
from fleet.teams.audit import Actor, record
from fleet.teams.models import Project, Team

MOST_MACHINES, MOST_NOTICE_MINUTES = 200, 24 * 60
Mistakes = Iterator[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSaid:
    """A schedule as people say it. Machines by id, or, where there is none, all of the project or with the label."""

    name: str
    enabled: bool = True
    machines: frozenset[int] = frozenset()
    project: Project | None = None
    label_name: str = ""
    label_value: str = ""
    days: tuple[int, ...] = (0, 1, 2, 3, 4)
    start_at: time | None = None
    stop_at: time | None = None
    time_zone: str = ""
    holidays: str = ""
    notice_minutes: int = 30
    accept_loss: bool = False

    @classmethod
    def of(cls, schedule: PowerSchedule) -> ScheduleSaid:
        plain = {one.name: getattr(schedule, one.name) for one in fields(cls) if one.name not in ("machines", "days")}
        machines = frozenset(schedule.machines.values_list("pk", flat=True))
        return cls(**plain, machines=machines, days=tuple(schedule.days))

    def columns(self) -> dict[str, Any]:
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "machines"}
        return {**found, "days": sorted(set(self.days))}


@transaction.atomic
def save_schedule(
    *, actor: Actor, team: Team, said: ScheduleSaid, now: datetime, schedule: PowerSchedule | None = None
) -> PowerSchedule:
    """Adds one, or changes `schedule`. Raises ValidationError by field."""
    if schedule is not None:
        schedule = PowerSchedule.objects.select_for_update(of=("self",)).select_related("team").get(pk=schedule.pk)
    check(team=team, said=said, schedule=schedule)
    old = plain(ScheduleSaid.of(schedule)) if schedule else {}
    new = plain(said)
    if schedule is not None and old == new:
        return schedule
    row = schedule or PowerSchedule(team=team, created_by=actor.user, created_at=now)
    for name, value in said.columns().items():
        setattr(row, name, value)
    row.since = now
    row.save()
    row.machines.set(said.machines)
    action = "power_schedule.update" if schedule else "power_schedule.add"
    changed = [name for name in new if new[name] != old.get(name)]
    shown = {name: old[name] for name in changed if name in old}, {name: new[name] for name in changed}
    record(actor=actor, team=team, action=action, target=row, old=shown[0], new=shown[1])
    if schedule is not None:
        drop_plans(row, actor=actor, now=now)
    return row


@transaction.atomic
def remove_schedule(*, actor: Actor, schedule: PowerSchedule, now: datetime) -> bool:
    """False: it was removed already."""
    if not PowerSchedule.objects.filter(pk=schedule.pk, removed_at=None).update(removed_at=now):
        return False
    record(
        actor=actor, team=schedule.team, action="power_schedule.remove", target=schedule, old={"name": schedule.name}
    )
    drop_plans(schedule, actor=actor, now=now)
    return True


def check(*, team: Team, said: ScheduleSaid, schedule: PowerSchedule | None) -> None:
    """Raises ValidationError with every mistake, each at its field."""
    found: dict[str, list[str]] = {}
    for part in (_name(team, said, schedule), _which(team, said), _when(said), _where(team, said)):
        for name, text in part:
            found.setdefault(name, []).append(text)
    if found:
        raise ValidationError(found)


def _name(team: Team, said: ScheduleSaid, schedule: PowerSchedule | None) -> Mistakes:
    others = PowerSchedule.objects.filter(team=team, name=said.name, removed_at=None)
    if not said.name:
        yield "name", _("Give it a name, by which messages tell of it.")
    elif (others.exclude(pk=schedule.pk) if schedule else others).exists():
        yield "name", _("There is a schedule of this name already: choose another one.")


def _which(team: Team, said: ScheduleSaid) -> Mistakes:
    if not (said.machines or said.project or said.label_name):
        yield "machines", _("Choose machines, or a project or a label whose machines it is for.")
    if said.machines and (said.project or said.label_name):
        yield "machines", _("Name machines, or a project and a label: not both.")
    if len(said.machines) > MOST_MACHINES:
        yield "machines", _("At most %(n)d machines can be named: give them a label or a project instead.") % {"n": MOST_MACHINES}  # fmt: skip
    elif Instance.objects.filter(team=team, pk__in=said.machines).count() != len(said.machines):
        yield "machines", _("Choose machines of this team.")
    if said.project is not None and said.project.team_id != team.pk:
        yield "project", _("Choose a project of this team.")
    if said.label_value and not said.label_name:
        yield "label_name", _("Name the label that has this value, or leave both empty.")


def _when(said: ScheduleSaid) -> Mistakes:
    if not said.days or any(day not in range(7) for day in said.days):
        yield "days", _("Choose the days: numbers from 0, Monday, to 6, Sunday.")
    if said.start_at is None and said.stop_at is None:
        yield "stop_at", _("Say when they are stopped, when they are started, or both.")
    elif said.start_at == said.stop_at:
        yield "stop_at", _("Start and stop are the same moment: choose two different times.")
    if not 0 <= said.notice_minutes <= MOST_NOTICE_MINUTES:
        yield "notice_minutes", _("Choose from 0 to %(n)d minutes.") % {"n": MOST_NOTICE_MINUTES}


def _where(team: Team, said: ScheduleSaid) -> Mistakes:
    if said.time_zone and said.time_zone not in available_timezones():
        yield "time_zone", _("There is no such time zone. Choose one as in Europe/Berlin, or leave it empty for the team's: %(zone)s.") % {"zone": team.time_zone}  # fmt: skip
    if said.holidays:
        try:
            normal_code(said.holidays)
        except UnknownCalendar as unknown:
            regions = ", ".join(unknown.regions)
            yield (
                "holidays",
                _("This country has no such region; it has: %(names)s.") % {"names": regions}
                if regions
                else _("Nobody keeps the holidays of this place: write a country as in DE, or DE-BY with its region."),
            )


def plain(said: ScheduleSaid) -> dict[str, Any]:
    """For the audit log."""
    clocks = {
        name: value.strftime("%H:%M") if value else "" for name, value in (("start_at", said.start_at), ("stop_at", said.stop_at))
    }  # fmt: skip
    columns = said.columns()
    return {
        **columns,
        **clocks,
        # In the log `enabled` is of accounts.
        "switched_on": columns.pop("enabled"),
        "project": said.project.slug if said.project else "",
        "machines": sorted(said.machines),
    }
