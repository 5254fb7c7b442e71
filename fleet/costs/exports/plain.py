"""Money as plain rows: for a spreadsheet one a charge and GPU state, for a notebook one a charge with a column a state."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from fleet.costs.exports.charges import AMOUNTS, GPU_SECONDS, Charge, Rates
from fleet.costs.exports.columns import Cell, Column, Kind, Row
from fleet.states import GpuState

_WHAT = (
    Column("day", Kind.DAY),
    Column("project"),
    Column("owner"),
    Column("job"),
    Column("labels", Kind.JSON),
    Column("provider"),
    Column("account"),
    Column("machine"),
    Column("machine_id", Kind.COUNT),
    Column("gpu_model"),
    Column("gpu_count", Kind.COUNT),
    Column("region"),
    Column("market"),
    Column("tenancy"),
    Column("is_idle_share", Kind.FLAG),
    Column("meter"),
)
_MONEY = (Column("amount", Kind.MONEY), Column("currency"))
_CONVERTED = (
    Column("converted_amount", Kind.MONEY),
    Column("converted_currency"),
    Column("exchange_rate", Kind.UNIT_PRICE),
    Column("exchange_rate_currency"),
    Column("exchange_rate_day", Kind.DAY),
    Column("exchange_rate_source"),
)
BY_STATE = (
    *_WHAT,
    Column("state"),
    *_MONEY,
    *_CONVERTED,
    Column("gpu_seconds", Kind.SECONDS),
    Column("unpriced_seconds", Kind.SECONDS),
)
MACHINE_DAYS = (
    *_WHAT,
    *_MONEY,
    *_CONVERTED,
    *(Column(name, Kind.MONEY) for name in AMOUNTS.values()),
    *(Column(name, Kind.SECONDS) for name in GPU_SECONDS.values()),
    Column("seconds", Kind.SECONDS),
    Column("unpriced_seconds", Kind.SECONDS),
)


def state_rows(charge: Charge, rates: Rates) -> Iterator[Row]:
    """Amounts of a charge's rows add up to it. Time without a price is on the first one, so that it counts once."""
    states: list[GpuState | None] = [
        state for state in AMOUNTS if charge.states[state] or charge.gpu_seconds.get(state)
    ]
    unpriced: float | None = charge.unpriced_seconds
    for state in states or [None]:
        amount = charge.states[state] if state else charge.amount
        yield {
            **what(charge),
            "state": state.value if state else None,
            "amount": amount,
            "currency": charge.currency,
            **converted(charge, rates, amount),
            "gpu_seconds": charge.gpu_seconds.get(state) if state else None,
            "unpriced_seconds": unpriced,
        }
        unpriced = None


def machine_day_row(charge: Charge, rates: Rates) -> Row:
    return {
        **what(charge),
        "amount": charge.amount,
        "currency": charge.currency,
        **converted(charge, rates, charge.amount),
        **{name: charge.states[state] for state, name in AMOUNTS.items()},
        **{name: charge.gpu_seconds[state] for state, name in GPU_SECONDS.items()},
        "seconds": charge.seconds,
        "unpriced_seconds": charge.unpriced_seconds,
    }


def what(charge: Charge) -> dict[str, Cell]:
    group, machine = charge.whose, charge.machine
    return {
        "day": charge.day,
        "project": group.project or None,
        "owner": group.owner or None,
        "job": group.job or None,
        "labels": group.labels or None,
        "provider": group.account.kind,
        "account": group.account.name,
        "machine": machine.name if machine else None,
        "machine_id": machine.pk if machine else None,
        "gpu_model": group.gpu_model or None,
        "gpu_count": machine.gpu_count if machine else None,
        "region": group.region or None,
        "market": group.market or None,
        "tenancy": group.tenancy or None,
        "is_idle_share": group.idle_share,
        "meter": charge.meter,
    }


def converted(charge: Charge, rates: Rates, amount: Decimal) -> dict[str, Cell]:
    """Nothing where there is no rate for the day: the amount stands in its own currency, and is in no converted total."""
    known = rates.convert(amount, charge.currency, charge.day)
    if known is None:
        return {}
    value, used = known
    return {
        "converted_amount": value,
        "converted_currency": rates.into,
        "exchange_rate": used.rate if used else None,
        "exchange_rate_currency": used.currency if used else None,
        "exchange_rate_day": used.day if used else None,
        "exchange_rate_source": (used.source or None) if used else None,
    }
