"""What a machine cost day by day, as entries of its timeline; the same sums as the page of costs."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from fleet.costs.spend.days import begin_of, day_of
from fleet.costs.spend.spend import By, Sum, Where, spend
from fleet.formats import amounts_text, money_text
from fleet.inventory.models import Instance
from fleet.panels import Context, TimelineEntry
from fleet.teams.access import TeamRequest

ONE_DAY = timedelta(days=1)


def told_money(request: TeamRequest, instance: Instance | None, since: datetime, until: datetime) -> Context | None:
    """One entry a day of the team's time zone, at its end; of the day that is not over, now. None of the whole team: Costs says it."""
    if instance is None:
        return None
    zone = ZoneInfo(request.team.time_zone or "UTC")
    first, last = day_of(since, zone), day_of(until, zone)
    found = spend(
        team=request.team, start=first, end=last + ONE_DAY, by=(By.DAY,), where=Where(instances=(instance.pk,))
    )
    entries = [
        day_entry(day, one, found.currency, at=min(begin_of(day + ONE_DAY, zone), until))
        for (day,), one in found.rows.items()
        if isinstance(day, date)
    ]
    return {"entries": [entry for entry in entries if entry.at >= since]}


def day_entry(day: date, one: Sum, currency: str, *, at: datetime) -> TimelineEntry:
    said = {"day": date_format(day, "j F"), "money": money_text(one.total, currency)}
    details = []
    if one.bought_nothing:
        details.append(_("%(money)s of it bought nothing") % {"money": money_text(one.bought_nothing, currency)})
    if one.unconverted:
        details.append(_("%(money)s without a rate beside it") % {"money": amounts_text(one.unconverted)})
    if one.unpriced_seconds:
        details.append(_("part of the day at a price that nobody told"))
    return TimelineEntry(at=at, text=_("%(day)s cost %(money)s") % said, detail=", ".join(details))
