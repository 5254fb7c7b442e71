"""What is said when prepaid money comes to its end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from fleet.alerts.causes import Cause, register_cause
from fleet.alerts.words import register_words
from fleet.costs.balances.shown import Runway
from fleet.formats import duration_text, money_text
from fleet.inventory.adapters import adapter_class
from fleet.inventory.failures import in_readers_language

CAUSE, SIGNAL = "account.balance", "balance_low"
Values = Mapping[str, Any]


def values_of(one: Runway) -> dict[str, Any]:
    assert one.lasts is not None
    return {
        "left": str(one.lasts.left.quantize(Decimal("0.0001"))),
        "currency": one.currency,
        "per_hour": str(one.burn_per_hour),
        "hours": None if one.lasts.hours is None else str(round(one.lasts.hours, 1)),
        "ends_at": one.lasts.ends_at.isoformat(timespec="minutes") if one.lasts.ends_at else "",
        "zero": adapter_class(one.account.kind).semantics.zero_balance,
        "unpriced": one.unpriced,
        "source": one.source,
    }


def low_words(values: Values) -> str:
    left = money_text(Decimal(values["left"]), values["currency"])
    said = {
        "left": left,
        "per_hour": money_text(Decimal(values["per_hour"]), values["currency"]),
        "time": duration_text(float(values["hours"]) * 3600),
        "at": date_format(timezone.localtime(datetime.fromisoformat(values["ends_at"])), "Y-m-d H:i"),
    }
    if Decimal(values["left"]) <= 0:
        text = _("nothing is left (%(left)s), and %(per_hour)s an hour goes on") % said
    else:
        text = _("%(left)s left, at %(per_hour)s an hour for %(time)s, until %(at)s") % said
    parts = [text, *_more(values)]
    return _("; ").join(parts)


def _more(values: Values) -> list[str]:
    parts = []
    if values["unpriced"]:
        count = values["unpriced"]
        parts.append(
            ngettext(
                "sooner: the price of %(n)d machine is not known",
                "sooner: the prices of %(n)d machines are not known",
                count,
            )
            % {"n": count}
        )
    if values["zero"]:
        parts.append(_("at zero %(what)s") % {"what": in_readers_language(values["zero"])})
    return parts


def register() -> None:
    register_words(SIGNAL, low_words)
    register_cause(
        Cause(
            CAUSE,
            gettext_lazy("runs out of credit"),
            gettext_lazy(
                "Pay in at the provider, or stop what is not needed: Costs, Balances says how long it lasts without the machines that do nothing. "
                "Save what only lies on disks there."
            ),
            quietable=False,
        )
    )
