"""Balances are read like other words of providers (`fleet.inventory.provider_word`), or typed where nobody can read them."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, cast

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from fleet.costs.balances.judging import judge_team
from fleet.costs.balances.models import BalanceLimits, BalanceReading, BalanceSource, TopUp
from fleet.inventory.adapters import can
from fleet.inventory.models import ProviderAccount
from fleet.inventory.provider_word.reading import Keys, Subject
from fleet.providers.base import Capability, Money, Provider, TellsBalance
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team

CURRENCY = re.compile(r"[A-Z]{3}")
MOST = Decimal(10) ** 13
# Less is no payment: some providers round what they show.
LEAST_TOP_UP = Decimal("0.01")
KEPT = timedelta(days=90)
OLDEST_TYPED = timedelta(days=92)
MOST_HOURS = 24 * 366


def read_balance(_account: ProviderAccount, adapter: Provider, _machines: Keys, _deadline: float) -> list[Money]:
    return [cast(TellsBalance, adapter).balance()]


def keep_read_balance(
    account: ProviderAccount, _machines: Keys, told: list[Any], now: datetime
) -> BalanceReading | None:
    """None for what no balance can be."""
    (money,) = told
    if not money.amount.is_finite() or abs(money.amount) >= MOST or not CURRENCY.fullmatch(money.currency):
        return None
    return keep_balance(
        account=account, amount=money.amount, currency=money.currency, source=BalanceSource.PROVIDER, at=now
    )


BALANCE = Subject("balance", Capability.BALANCE, 600, read_balance, keep_read_balance)


@transaction.atomic
def keep_balance(
    *,
    account: ProviderAccount,
    amount: Decimal,
    currency: str,
    source: BalanceSource,
    at: datetime,
    actor: Actor | None = None,
) -> BalanceReading:
    """One reading, and what was paid in where it is higher than the one before."""
    before = BalanceReading.objects.filter(account=account, currency=currency, at__lt=at).order_by("-at").first()
    row, _made = BalanceReading.objects.update_or_create(
        account=account,
        at=at,
        defaults={
            "amount": amount,
            "currency": currency,
            "source": source,
            "created_by": actor.user if actor else None,
        },
    )
    if before is not None and amount - before.amount >= LEAST_TOP_UP:
        TopUp.objects.update_or_create(
            account=account,
            at=at,
            defaults={
                "before": before.amount,
                "amount": amount - before.amount,
                "currency": currency,
                "source": source,
            },
        )
        # Whoever paid in need not wait to see the alert go.
        judge_team(team=account.team, now=at)
    return row


@transaction.atomic
def type_balance(
    *, actor: Actor, account: ProviderAccount, amount: Decimal, currency: str, at: datetime, now: datetime
) -> BalanceReading:
    """For accounts whose provider tells none: from `at` on it is counted down by the ledger. Raises ValidationError by field."""
    if can(account, Capability.BALANCE):
        raise ValidationError({"account": _("The balance of this account is read from its provider.")})
    if account.disconnected_at is not None:
        raise ValidationError({"account": _("This account is disconnected.")})
    if not amount.is_finite() or abs(amount) >= MOST:
        raise ValidationError({"amount": _("Type an amount.")})
    if not CURRENCY.fullmatch(currency):
        raise ValidationError({"currency": _("Type the three letters of a currency, as in USD.")})
    if at > now:
        raise ValidationError({"at": _("Choose a time that is not to come.")})
    if at < now - OLDEST_TYPED:
        raise ValidationError({"at": _("Choose a time within the last three months, or type what is left now.")})
    row = keep_balance(
        account=account, amount=amount, currency=currency, source=BalanceSource.TYPED, at=at, actor=actor
    )
    record(
        actor=actor, team=account.team, action="balance.type", target=row, new={"amount": str(amount), "currency": currency}
    )  # fmt: skip
    return row


@transaction.atomic
def set_limits(
    *,
    actor: Actor,
    team: Team,
    account: ProviderAccount | None,
    warning_hours: int,
    urgent_hours: int,
    now: datetime,
) -> BalanceLimits:
    """Of one account, or with None of all that have none of their own. Raises ValidationError by field."""
    if account is not None and account.team_id != team.pk:
        raise ValidationError({"account": _("Choose a provider account of this team.")})
    if not 1 <= warning_hours <= MOST_HOURS:
        raise ValidationError({"warning_hours": _("Choose from one hour to a year.")})
    if not 0 <= urgent_hours <= warning_hours:
        raise ValidationError({"urgent_hours": _("It is urgent later than it is a warning: choose fewer hours.")})
    row, _made = BalanceLimits.objects.update_or_create(
        team=team,
        account=account,
        defaults={"warning_hours": warning_hours, "urgent_hours": urgent_hours, "changed_at": now},
    )
    new = {"about": str(account or team), "warning_hours": warning_hours, "urgent_hours": urgent_hours}
    record(actor=actor, team=team, action="balance.limits", target=row, new=new)
    return row


def prune_balances(*, now: datetime) -> int:
    """After 90 days; the newest of each account stays however old it is. Payments stay."""
    newest = BalanceReading.objects.order_by("account", "-at").distinct("account").values("pk")
    return BalanceReading.objects.filter(at__lt=now - KEPT).exclude(pk__in=newest).delete()[0]
