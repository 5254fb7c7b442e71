"""What a job may cost. Raises JobRefused where such a limit could not be kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils.translation import gettext_lazy as _

from fleet.costs.spend.converting import rates_into
from fleet.costs.spend.days import day_of
from fleet.inventory.models import Instance
from fleet.inventory.prices import price_now
from fleet.teams.models import Team
from jobs.book.order import JobRefused, Order

CURRENCY = re.compile(r"[A-Z]{3}")


def refuse_budget(team: Team, order: Order, machines: Sequence[Instance], now: datetime) -> None:
    """A limit that nobody could hold a job to is none: every machine's price must be known, in a currency that leads to the budget's."""
    amount, currency = order.budget_amount, order.budget_currency
    if amount is None:
        return
    if amount <= 0:
        raise JobRefused("budget_amount", _("A budget is more than 0. Leave it empty for none."))
    if not CURRENCY.fullmatch(currency):
        raise JobRefused("budget_currency", _("Give the three letters of a currency, as USD."))
    known = {currency, *_with_rates(team, currency, now)}
    for machine in machines:
        if price_now(machine) is None:
            text = _(
                "Nobody knows what %(name)s costs, so a budget could not be kept. Leave it empty, or set a deadline."
            )
            raise JobRefused("budget_amount", text % {"name": machine.name})
        if machine.currency not in known:
            text = _("%(name)s is charged in %(currency)s, and no exchange rate leads from there. Type one under Costs, Exchange rates.")  # fmt: skip
            raise JobRefused("budget_currency", text % {"name": machine.name, "currency": machine.currency})


def _with_rates(team: Team, currency: str, now: datetime) -> set[str]:
    today = day_of(now, ZoneInfo(team.time_zone))
    rates = rates_into(team_id=team.pk, currency=currency, start=today, end=today + timedelta(days=1))
    return {one.currency for one in rates}
