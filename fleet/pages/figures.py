"""Three of the four figures on top of every page; the fourth is of fleet.alerts. What nothing is known of is said to be unknown, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext

from fleet.costs.month import Month
from fleet.costs.spend.models import CostProgress
from fleet.costs.spend.spend import spend
from fleet.formats import amounts_text, money_text, whole_money_text
from fleet.pages.fleet import Fleet, fleet_of, load_fleet
from fleet.pages.kept import kept_or_made
from fleet.panels import Context
from fleet.states import GpuState
from fleet.teams.access import TeamRequest
from fleet.teams.models import Team

# Pages that show no machines take figures of at most this age, so that a form does not cost a reading of the fleet.
KEPT_SECONDS = 10
# How often prices are polled unless an account says otherwise.
PRICE_PERIOD_SECONDS = 60
# How often days are summed, and for how long their sum is kept for the strip.
SUM_PERIOD_SECONDS = 300
MONTH_KEPT_SECONDS = 60


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
    return kept_or_made(
        f"figures:{request.team.pk}",
        lambda: Figures.of(load_fleet(team=request.team, now=timezone.now())),
        seconds=KEPT_SECONDS,
    )


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
    labels: Context = {"label": _("Idle money"), "short": _("Idle"), "url_name": "idle", "tone": "held"}
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


def month_to_date(request: TeamRequest) -> Context:
    """From the ledger, as far as it is summed; a team of which nothing was ever seen has no figure."""
    month = Month.of(request.team, now=timezone.now())
    word = date_format(month.first, pgettext("date format of a month", "F"))
    labels: Context = {
        "label": _("%(month)s to date") % {"month": word},
        "short": word,
        "url_name": "costs",
        "is_sum": True,
    }
    spent = _month_spend(request.team, month)
    if spent is None:
        return {**labels, "why": _("nothing is counted yet")}
    whole = whole_money_text(spent.total, spent.currency)
    sub = _("%(money)s bought nothing") % {"money": whole_money_text(spent.bought_nothing, spent.currency)}
    if spent.unconverted:
        sub = _("%(money)s without a rate beside it") % {"money": amounts_text(spent.unconverted)}
    return {**labels, "whole": whole, "sub": sub, "read_at": spent.summed_until, "period": SUM_PERIOD_SECONDS}


@dataclass(frozen=True, slots=True)
class MonthSpend:
    """Of the month so far, cut loose from the rows so that it can be cached."""

    total: Decimal
    bought_nothing: Decimal
    currency: str
    unconverted: dict[str, Decimal]
    summed_until: datetime


def _month_spend(team: Team, month: Month) -> MonthSpend | None:
    return kept_or_made(f"month-spend:{team.pk}:{month}", lambda: _read_month(team, month), seconds=MONTH_KEPT_SECONDS)


def _read_month(team: Team, month: Month) -> MonthSpend | None:
    progress = CostProgress.objects.filter(team=team).first()
    if progress is None:
        return None
    found = spend(team=team, start=month.first, end=month.next_first)
    return MonthSpend(
        found.all.total, found.all.bought_nothing, found.currency, found.all.unconverted, progress.summed_until
    )
