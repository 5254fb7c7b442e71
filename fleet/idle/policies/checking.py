"""What a policy may not be. Every mistake names its field and what to do, all of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from zoneinfo import available_timezones

from django.core.exceptions import ValidationError
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.idle.hours import UnknownCalendar, normal_code
from fleet.idle.policies.models import IdleAction, IdlePolicy, IdleWindowFrom, UseMode
from fleet.idle.policies.said import PolicySaid
from fleet.idle.policies.thresholds import BY_NAME
from fleet.inventory.models import Instance
from fleet.providers.base import Tenancy
from fleet.providers.registry import adapters
from fleet.teams.models import Team

Mistakes = Iterator[tuple[str, str | Promise]]
MOST_EXCLUDED, MOST_WARNINGS, LONGEST_CODE = 500, 5, 10
DAY_MINUTES = 1440
# What a whole number may be: field, least, most, and the unit in words.
WHOLES: tuple[tuple[str, int, int, str | Promise], ...] = (
    ("window_minutes", 5, 7 * DAY_MINUTES, gettext_lazy("minutes")),
    ("grace_minutes", 5, 7 * DAY_MINUTES, gettext_lazy("minutes")),
    ("hook_minutes", 1, 60, gettext_lazy("minutes")),
    ("restart_minutes", 1, DAY_MINUTES, gettext_lazy("minutes")),
    ("max_age_hours", 1, 24 * 366, gettext_lazy("hours")),
    ("delete_after_days", 1, 366, gettext_lazy("days")),
)


def check(*, team: Team, said: PolicySaid, policy: IdlePolicy | None = None) -> None:
    """Raises ValidationError by field. `policy`: as it is; what it names already it may go on naming."""
    found: dict[str, list[str | Promise]] = {}
    for part in (_words(said), _whose(team, said, policy), _scope(team, said), _meaning(said), _acts(said), _hours(team, said)):  # fmt: skip
        for name, text in part:
            found.setdefault(name, []).append(text)
    if _is_taken(team, said.name, policy):
        found["name"] = [_("There is a policy of this name already: choose another one.")]
    if found:
        raise ValidationError(found)


def _is_taken(team: Team, name: str, policy: IdlePolicy | None) -> bool:
    rows = IdlePolicy.objects.filter(team=team, name=name, removed_at=None)
    return (rows.exclude(pk=policy.pk) if policy else rows).exists()


def _words(said: PolicySaid) -> Mistakes:
    if not said.name:
        yield "name", _("Give it a name, by which warnings tell of it.")
    choices: tuple[tuple[str, type[Any]], ...] = (("mode", UseMode), ("window_from", IdleWindowFrom), ("action", IdleAction))  # fmt: skip
    for name, words in choices:
        if getattr(said, name) not in words.values:
            yield name, _("Choose one of: %(words)s.") % {"words": ", ".join(words.values)}
    for name, least, most, unit in WHOLES:
        value = getattr(said, name)
        if value is not None and not least <= value <= most:
            yield name, _("Choose from %(least)d to %(most)d %(unit)s.") % {"least": least, "most": most, "unit": unit}


def _whose(team: Team, said: PolicySaid, policy: IdlePolicy | None) -> Mistakes:
    if said.project is not None and said.project.team_id != team.pk:
        yield "project", _("Choose a project of this team.")
    elif said.project is not None and said.project.archived_at and said.project != (policy and policy.project):
        yield "project", _("This project is archived: choose another one.")
    if said.account is not None and said.account.team_id != team.pk:
        yield "account", _("Choose a provider account of this team.")
    elif said.account is not None and said.account.disconnected_at and said.account != (policy and policy.account):
        yield "account", _("This account was disconnected: choose another one.")


def _scope(team: Team, said: PolicySaid) -> Mistakes:
    if said.provider and said.provider not in adapters():
        yield "provider", _("There is no provider “%(name)s” here.") % {"name": said.provider}
    elif said.provider and said.account is not None and said.account.kind != said.provider:
        yield "provider", _("The account is of another provider, so that no machine is both: leave one of them empty.")
    if said.tenancy and said.tenancy not in set(Tenancy):
        yield "tenancy", _("Choose one of: %(words)s.") % {"words": ", ".join(Tenancy)}
    if said.label_value and not said.label_name:
        yield "label_name", _("Name the label that has this value, or leave both empty.")
    if len(said.excluded) > MOST_EXCLUDED:
        yield "excluded", _("At most %(n)d machines can be left out: give them a label or a project instead.") % {"n": MOST_EXCLUDED}  # fmt: skip
    elif Instance.objects.filter(team=team, pk__in=said.excluded).count() != len(said.excluded):
        yield "excluded", _("Choose machines of this team.")


def _meaning(said: PolicySaid) -> Mistakes:
    if said.wrong_stop_gpu_hours is not None and not 0 < said.wrong_stop_gpu_hours <= 10_000:
        yield "wrong_stop_gpu_hours", _("Type GPU-hours above 0, at most 10,000, or leave it empty.")
    for name, value in said.limits.items():
        threshold = BY_NAME.get(name)
        if threshold is None:
            yield "limits", _("There is no threshold “%(name)s”; they are: %(names)s.") % {"name": name, "names": ", ".join(BY_NAME)}  # fmt: skip
        elif not threshold.low <= value <= threshold.high:
            most = {"name": name, "low": f"{threshold.low:g}", "high": f"{threshold.high:g}"}
            yield "limits", _("%(name)s: choose from %(low)s to %(high)s.") % most


def _acts(said: PolicySaid) -> Mistakes:
    if said.acts and said.mode == UseMode.PINNED:
        yield "action", _("Machines that are pinned are never idle, so nothing would be stopped: choose “only tell”, or another use.")  # fmt: skip
    if said.action == IdleAction.TERMINATE and not said.accept_loss:
        yield "accept_loss", _("Terminating deletes the machine's own disk: agree to the loss, or choose “stop”.")
    if len(set(said.warn_minutes)) > MOST_WARNINGS or any(not 0 < minutes < said.grace_minutes for minutes in said.warn_minutes):  # fmt: skip
        yield "warn_minutes", _("Name up to five reminders, each fewer minutes before the stop than the %(n)d minutes of grace.") % {"n": said.grace_minutes}  # fmt: skip


def _hours(team: Team, said: PolicySaid) -> Mistakes:
    if any(day not in range(7) for day in said.office_days):
        yield "office_days", _("Days are numbers from 0, Monday, to 6, Sunday.")
    if (said.office_from is None) != (said.office_until is None):
        name = "office_from" if said.office_from is None else "office_until"
        yield name, _("Office hours have a beginning and an end: give both, or neither.")
    elif said.office_days and said.office_from is None:
        yield "office_from", _("Say from when until when on these days, or choose no day.")
    elif said.office_from is not None and not said.office_days:
        yield "office_days", _("Choose the days with these office hours, or leave the hours empty.")
    elif said.acts and not said.holidays and _never_ends(said):
        yield "office_days", _("It is always office hours, so nothing would ever be stopped: leave some time, or choose “only tell”.")  # fmt: skip
    if said.time_zone and said.time_zone not in available_timezones():
        yield "time_zone", _("There is no such time zone. Choose one as in Europe/Berlin, or leave it empty for the team's: %(zone)s.") % {"zone": team.time_zone}  # fmt: skip
    yield from _calendar(said)


def _never_ends(said: PolicySaid) -> bool:
    return set(said.office_days) == set(range(7)) and said.office_from == said.office_until


def _calendar(said: PolicySaid) -> Mistakes:
    try:
        normal_holidays(said.holidays)
    except UnknownCalendar as unknown:
        yield "holidays", _unknown(unknown)
        return
    if said.holidays and not said.office_days:
        yield "holidays", _("Holidays only count for office hours: choose their days and hours, or leave it empty.")
    if len(said.holidays) > LONGEST_CODE:
        yield "holidays", _("The name of this region is too long to be kept: name the country alone.")


def _unknown(place: UnknownCalendar) -> str:
    if not place.is_country_known:
        return _("Nobody keeps the holidays of “%(code)s”. Write the two letters of a country, as in CN, or with a region, as in DE-BY.") % {"code": place.code}  # fmt: skip
    if not place.regions:
        return _("No region of this country has holidays of its own: leave it empty.")
    return _("This country has no such region. It has: %(regions)s.") % {"regions": ", ".join(place.regions)}


def normal_holidays(code: str) -> str:
    """As calendars spell it. Raises UnknownCalendar."""
    return "-".join(filter(None, normal_code(code))) if code else ""
