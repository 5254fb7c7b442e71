"""The parts of a forecast in the reader's language, each with the page that shows what it is made of."""

from __future__ import annotations

from dataclasses import replace

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.costs.forecast.reckoning.flows import clock
from fleet.costs.forecast.reckoning.parts import PartKind
from fleet.costs.forecast.reckoning.reckon import Forecast, Part
from fleet.costs.ledger.intervals import Unit
from fleet.formats import money_text, number_text
from fleet.teams.models import Team

LINKS = {
    PartKind.SPENT: ("costs", "#went"),
    PartKind.RUNNING: ("instances", ""),
    PartKind.DISKS: ("instances", "?state=stopped"),
    PartKind.STARTS: ("alerts", ""),
    PartKind.STOPS: ("alerts", ""),
    PartKind.LEASES: ("instances", ""),
    PartKind.NEW: ("instances", ""),
    PartKind.GOING: ("instances", ""),
}


def worded(part: Part, made: Forecast, team: Team) -> Part:
    name, rest = LINKS.get(part.kind, ("costs", ""))
    return replace(part, words=words_of(part, made), link=reverse(name, args=[team.slug]) + rest)


def words_of(part: Part, made: Forecast) -> str:
    if part.kind is PartKind.RUNNING:
        days = number_text(float(clock(Unit.HOUR, made.month_end, made.since)) / 24)
        return _("%(days)s days at %(rate)s/h") % {"days": days, "rate": money_text(made.per_hour, made.currency)}
    counted = {
        PartKind.STOPS: ngettext("%(n)d machine with a planned stop", "%(n)d machines with planned stops", part.count),
        PartKind.STARTS: ngettext(
            "%(n)d machine with a planned start", "%(n)d machines with planned starts", part.count
        ),
        PartKind.LEASES: ngettext("%(n)d lease that ends", "%(n)d leases that end", part.count),
    }
    if part.kind in counted:
        return counted[part.kind] % {"n": part.count}
    return PLAIN[part.kind]()


PLAIN = {
    PartKind.SPENT: lambda: _("Spent so far"),
    PartKind.DISKS: lambda: _("Disks of stopped machines"),
    PartKind.CHARGES: lambda: _("Volumes, commitments and typed charges"),
    PartKind.MINIMUMS: lambda: _("Minimums and rounding of runs that end"),
    PartKind.NEW: lambda: _("New machines, as in past weeks"),
    PartKind.GOING: lambda: _("Machines that end or pause, as in past weeks"),
}
