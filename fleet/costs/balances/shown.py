"""`runways_of`: how long the prepaid money of each account lasts. Pages, the API and alerts read it from here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from fleet.costs.balances.models import (
    URGENT_HOURS,
    WARNING_HOURS,
    BalanceLimits,
    BalanceReading,
    BalanceSource,
    IdleBurn,
)
from fleet.costs.balances.runway import Lasts, at_rate, lasts, severity_of, spent_between
from fleet.costs.forecast.rates import charged_between, factors_into
from fleet.costs.forecast.reckoning.inputs import OpenRate
from fleet.inventory.adapters import can
from fleet.inventory.failures import in_readers_language
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.prices import Burn, burn
from fleet.inventory.provider_word.models import ProviderReading
from fleet.providers.base import Capability
from fleet.providers.registry import adapters
from fleet.teams.models import Team

PRICED = ("account_id", "gone_at", "billing", "price_per_hour", "storage_price_per_hour", "currency", "priced_at")


@dataclass(frozen=True, slots=True)
class Limits:
    warning_hours: int = WARNING_HOURS
    urgent_hours: int = URGENT_HOURS
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class Runway:
    """`balance`: as it was read or typed at `read_at`, None = never; `lasts`: from now on. Everything is in `currency`.

    `unpriced`: machines that cost something nobody knows, `others`: what an hour costs in currencies without a rate: with any of them it
    lasts for at most so long. `without_idle`: if its machines that do nothing were gone. `error`: why it could not be read lately.
    """

    account: ProviderAccount
    balance: Decimal | None
    currency: str
    source: str
    read_at: datetime | None
    burn_per_hour: Decimal
    lasts: Lasts | None
    idle_per_hour: Decimal
    without_idle: Lasts | None
    limits: Limits
    unpriced: int = 0
    others: dict[str, Decimal] = field(default_factory=dict)
    is_readable: bool = False
    error: str = ""
    failed_at: datetime | None = None

    @property
    def hours_left(self) -> Decimal | None:
        return self.lasts.hours if self.lasts else None

    @property
    def ends_at(self) -> datetime | None:
        return self.lasts.ends_at if self.lasts else None

    @property
    def without_idle_hours(self) -> Decimal | None:
        return self.without_idle.hours if self.without_idle else None

    @property
    def is_at_most(self) -> bool:
        return bool(self.unpriced or self.others)

    @property
    def zero_balance(self) -> str:
        """What its provider does at zero, in the reader's language; empty where it does not say."""
        adapter = adapters().get(self.account.kind)
        return in_readers_language(adapter.semantics.zero_balance) if adapter else ""

    def severity(self, stands: str = "") -> str:
        if self.lasts is None:
            return ""
        return severity_of(
            self.lasts,
            warning_hours=self.limits.warning_hours,
            urgent_hours=self.limits.urgent_hours,
            stands=stands,
        )


def runways_of(team: Team, now: datetime) -> list[Runway]:
    """The one that ends first before the others; those of which nothing is known at the end.

    Queries grow with the currencies of balances alone: one for its rates, one more for what was charged since balances were typed.
    """
    accounts = list(prepaid_accounts(team))
    known = Known.of(team, accounts, now)
    return sorted((known.runway(account) for account in accounts), key=_order)


def prepaid_accounts(team: Team) -> Iterable[ProviderAccount]:
    """Whose provider tells a balance, and those of which somebody typed one."""
    rows = ProviderAccount.objects.filter(team=team, disconnected_at=None).defer("credentials").order_by("name", "pk")
    typed = set(BalanceReading.objects.filter(account__team=team).values_list("account", flat=True).distinct())
    return [account for account in rows if account.pk in typed or can(account, Capability.BALANCE)]


def _order(one: Runway) -> tuple[int, Decimal]:
    if one.lasts is None:
        return 2, Decimal(0)
    return (1, Decimal(0)) if one.lasts.hours is None else (0, one.lasts.hours)


@dataclass
class Known:
    """What is read once for all accounts of a team."""

    team: Team
    now: datetime
    newest: dict[int, BalanceReading]
    burns: dict[int, Burn]
    idle: dict[int, IdleBurn]
    limits: dict[int | None, Limits]
    readings: dict[int, ProviderReading]
    factors: dict[str, dict[str, Decimal]] = field(default_factory=dict)
    charged: dict[str, dict[int, list[OpenRate]]] = field(default_factory=dict)

    @classmethod
    def of(cls, team: Team, accounts: Sequence[ProviderAccount], now: datetime) -> Known:
        ids = [account.pk for account in accounts]
        newest = BalanceReading.objects.filter(account__in=ids).order_by("account", "-at").distinct("account")
        readings = ProviderReading.objects.filter(account__in=ids, subject="balance")
        limits = BalanceLimits.objects.filter(team=team)
        return cls(
            team,
            now,
            {row.account_id: row for row in newest},
            _burns(ids),
            IdleBurn.objects.in_bulk(ids),
            {row.account_id: Limits(row.warning_hours, row.urgent_hours, row.account_id is not None) for row in limits},
            {row.account_id: row for row in readings},
        )

    def runway(self, account: ProviderAccount) -> Runway:
        newest, reading = self.newest.get(account.pk), self.readings.get(account.pk)
        currency = newest.currency if newest else account.currency
        burnt = self.burns.get(account.pk, Burn())
        per_hour, others = self._converted(burnt.amounts, currency)
        idle = self._idle(account.pk, currency, per_hour)
        left = self._left(newest, per_hour) if newest else None
        return Runway(
            account=account,
            balance=newest.amount if newest else None,
            currency=currency,
            source=newest.source if newest else "",
            read_at=newest.at if newest else None,
            burn_per_hour=per_hour,
            lasts=left,
            idle_per_hour=idle,
            without_idle=at_rate(left.left, per_hour - idle, self.now) if left and idle else None,
            limits=self.limits.get(account.pk) or self.limits.get(None) or Limits(),
            unpriced=burnt.unpriced,
            others=others,
            is_readable=can(account, Capability.BALANCE),
            error=in_readers_language(reading.error_detail) if reading and reading.failures else "",
            failed_at=reading.failed_at if reading and reading.failures else None,
        )

    def _left(self, newest: BalanceReading, per_hour: Decimal) -> Lasts:
        """What was read goes on at the present rate; what was typed is counted down by the ledger."""
        if newest.source == BalanceSource.PROVIDER:
            return lasts(amount=newest.amount, read_at=newest.at, per_hour=per_hour, now=self.now)
        rates = self._charged(newest.currency).get(newest.account_id, [])
        return at_rate(newest.amount - spent_between(rates, newest.at, self.now), per_hour, self.now)

    def _charged(self, currency: str) -> dict[int, list[OpenRate]]:
        """By account, since the first of all balances that were typed in this currency."""
        if currency not in self.charged:
            typed = [row for row in self.newest.values() if row.source == BalanceSource.TYPED]
            start = min(row.at for row in typed if row.currency == currency)
            found: dict[int, list[OpenRate]] = defaultdict(list)
            factors = self._factors(currency)
            for account, rate in charged_between(team=self.team, start=start, end=self.now, factors=factors).rates:
                found[account].append(rate)
            self.charged[currency] = found
        return self.charged[currency]

    def _idle(self, account_id: int, currency: str, per_hour: Decimal) -> Decimal:
        row = self.idle.get(account_id)
        amounts = {name: Decimal(text) for name, text in row.amounts.items()} if row else {}
        return min(self._converted(amounts, currency)[0], per_hour)

    def _converted(self, amounts: dict[str, Decimal], currency: str) -> tuple[Decimal, dict[str, Decimal]]:
        """The sum of what has a rate into `currency`, and what has none."""
        factors = self._factors(currency)
        known = sum((amount * factors[name] for name, amount in amounts.items() if name in factors), Decimal(0))
        return known, {name: amount for name, amount in amounts.items() if name not in factors and amount}

    def _factors(self, currency: str) -> dict[str, Decimal]:
        if currency not in self.factors:
            self.factors[currency] = factors_into(self.team, currency, self.now.date())
        return self.factors[currency]


def _burns(account_ids: Sequence[int]) -> dict[int, Burn]:
    machines: dict[int, list[Instance]] = {}
    for machine in Instance.objects.filter(account__in=account_ids, gone_at=None).only(*PRICED):
        machines.setdefault(machine.account_id, []).append(machine)
    return {pk: burn(rows) for pk, rows in machines.items()}
