"""Three of the four figures on top of every page; the fourth is of fleet.alerts. What no part of Rackrent records yet is said to be unknown, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.core.cache import cache
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from fleet.formats import amounts_text, money_text
from fleet.pages.fleet import Fleet, fleet_of, load_fleet
from fleet.panels import Context
from fleet.states import GpuState
from fleet.teams.access import TeamRequest

# Pages that show no machines take figures of at most this age, so that a form does not cost a reading of the fleet.
KEPT_SECONDS = 10
# How often prices are polled unless an account says otherwise.
PRICE_PERIOD_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Figures:
    """What the strip says of a team, cut loose from the machines so that it can be cached."""

    machine_count: int
    reporting: int
    unpriced: int
    amounts: dict[str, Decimal]
    held: dict[str, Decimal]
    free: dict[str, Decimal]
    idle: dict[str, Decimal]
    priced_at: datetime | None
    read_at: datetime | None

    @classmethod
    def of(cls, fleet: Fleet) -> Figures:
        return cls(
            machine_count=len(fleet.machines),
            reporting=sum(view.reports and bool(view.tiles) for view in fleet.machines),
            unpriced=fleet.unpriced,
            amounts=fleet.amounts,
            held=fleet.share({GpuState.HELD_IDLE}),
            free=fleet.share({GpuState.FREE}),
            idle=fleet.idle_amounts,
            priced_at=fleet.priced_at,
            read_at=fleet.read_at,
        )


def figures_of(request: TeamRequest) -> Figures:
    if hasattr(request, "_fleet"):
        return Figures.of(fleet_of(request))
    key = f"figures:{request.team.pk}"
    kept: Figures | None = cache.get(key)
    if kept is None:
        kept = Figures.of(load_fleet(team=request.team, now=timezone.now()))
        cache.set(key, kept, KEPT_SECONDS)
    return kept


def money_parts(amounts: dict[str, Decimal], team_currency: str) -> Context:
    """The figure in the team's currency (else the largest), its cents apart for narrow screens, and the other currencies."""
    main = team_currency if team_currency in amounts else max(amounts, key=lambda currency: amounts[currency])
    whole, _point, cents = money_text(amounts[main], main).partition(".")
    others = {currency: amount for currency, amount in amounts.items() if currency != main}
    return {"whole": whole, "cents": f".{cents}", "others": amounts_text(others)}


def burn(request: TeamRequest) -> Context:
    figures = figures_of(request)
    labels: Context = {"label": _("Burn rate"), "short": _("Burn"), "url_name": "instances"}
    if not figures.amounts:
        why = _("no provider connected yet") if not figures.machine_count else _("no machine has a known price")
        return {**labels, "why": why}
    sub = _("price × now")
    if figures.unpriced:
        said = ngettext("%(n)d machine without a price", "%(n)d machines without a price", figures.unpriced)
        sub = f"{sub}, {said % {'n': figures.unpriced}}"
    money = money_parts(figures.amounts, request.team.currency)
    return {**labels, **money, "sub": sub, "read_at": figures.priced_at, "period": PRICE_PERIOD_SECONDS}


def idle_money(request: TeamRequest) -> Context:
    figures = figures_of(request)
    labels: Context = {"label": _("Idle money"), "short": _("Idle"), "url_name": "instances", "tone": "held"}
    if not figures.idle or not figures.reporting:
        return {**labels, "tone": "", "why": _("needs a price and an agent")}
    money = money_parts(figures.idle, request.team.currency)
    sub = _("%(held)s held idle, %(free)s free") % {
        "held": amounts_text(figures.held) or "0",
        "free": amounts_text(figures.free) or "0",
    }
    return {**labels, **money, "sub": sub, "viz": _part_of_burn(figures), "read_at": figures.read_at, "period": 10}


def _part_of_burn(figures: Figures) -> str:
    burning = sum(figures.amounts.values())
    if len(figures.amounts) != 1 or not burning:
        return ""
    return _("%(percent)d%% of burn") % {"percent": round(100 * sum(figures.idle.values()) / burning)}


def month_to_date(_request: TeamRequest) -> Context:
    """Unknown until costs are recorded: a sum of prices that nobody wrote down would be made up."""
    month = date_format(timezone.localtime(), pgettext("date format of a month", "F"))
    return {
        "label": _("%(month)s to date") % {"month": month},
        "short": month,
        "url_name": "instances",
        "why": _("no bill read yet"),
    }
