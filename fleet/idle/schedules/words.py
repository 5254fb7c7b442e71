"""What is said of schedules: each as a sentence, its edges, and why an act of one is planned."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.utils.dates import WEEKDAYS_ABBR
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from fleet.idle.policies.places import country_words
from fleet.idle.schedules.edges import Edge, Turn
from fleet.idle.schedules.models import PowerSchedule

KIND = "schedule"
EVERY_DAY, WORKDAYS, WEEKEND = list(range(7)), list(range(5)), [5, 6]


def source_of(schedule: PowerSchedule) -> str:
    """By which its planned acts are known."""
    return f"{KIND}:{schedule.pk}"


def edge_words(values: Mapping[str, Any]) -> str:
    """Why an act is planned."""
    at = datetime.fromisoformat(values["edge"]).astimezone(ZoneInfo(values["zone"]))
    said = {"schedule": values["schedule"], "time": at.strftime("%H:%M"), "zone": values["zone"]}
    if values["turn"] == Turn.START:
        return _("the schedule “%(schedule)s” starts it at %(time)s (%(zone)s)") % said
    return _("the schedule “%(schedule)s” stops it at %(time)s (%(zone)s)") % said


def turn_words(edge: Edge, zone: ZoneInfo) -> str:
    """As in "Tue, 1 Dec, 20:00: stop"."""
    at = edge.at.astimezone(zone)
    said = {"day": WEEKDAYS_ABBR[at.weekday()], "date": date_format(at, "Y-m-d"), "time": at.strftime("%H:%M")}
    if edge.turn is Turn.START:
        return _("%(day)s %(date)s, %(time)s: start") % said
    return _("%(day)s %(date)s, %(time)s: stop") % said


def sentence(schedule: PowerSchedule) -> str:
    """What it does, in the words of a person."""
    said = {"days": days_words(schedule.days), "start": _clock(schedule.start_at), "stop": _clock(schedule.stop_at)}
    if schedule.start_at and schedule.stop_at:
        if schedule.stop_at <= schedule.start_at:
            return _("%(days)s it starts them at %(start)s and stops them at %(stop)s on the next day.") % said
        return _("%(days)s it starts them at %(start)s and stops them at %(stop)s.") % said
    if schedule.start_at:
        return _("%(days)s it starts them at %(start)s, and never stops them.") % said
    return _("%(days)s it stops them at %(stop)s; people start them.") % said


def more_words(schedule: PowerSchedule) -> list[str]:
    minutes = schedule.notice_minutes
    found = [
        ngettext("Owners are told %(n)d minute before a stop.", "Owners are told %(n)d minutes before a stop.", minutes)
        % {"n": minutes}
    ]
    if schedule.holidays:
        found.append(
            _("Nothing starts on holidays of %(place)s; days worked instead count.")
            % {"place": country_words(schedule.holidays)}
        )
    if schedule.accept_loss:
        found.append(_("Also where a stop loses data."))
    return found


def days_words(days: list[int]) -> str:
    known = {tuple(EVERY_DAY): _("Every day"), tuple(WORKDAYS): _("Monday to Friday"), tuple(WEEKEND): _("On weekends")}
    chosen = tuple(sorted(days))
    return known.get(chosen) or pgettext("list", ", ").join(str(WEEKDAYS_ABBR[day]) for day in chosen)


def _clock(value: Any) -> str:
    return value.strftime("%H:%M") if value else ""
