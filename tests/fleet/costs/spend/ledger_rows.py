"""Intervals, hours of GPUs and owners, as the tests of summing write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from fleet.costs.attribution.models import AttributionSpan, SplitMode
from fleet.costs.book.models import LedgerInterval, LedgerMeter
from fleet.costs.ledger.intervals import EdgeSource, PriceSource
from fleet.inventory.models import GPU, Instance, ProviderAccount
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.rollups.models import GpuRollupHour

HOUR = timedelta(hours=1)


def at(text: str) -> datetime:
    """at("2026-05-03 14:30") in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def charged(
    one: Instance | ProviderAccount,
    kind: str,
    start: datetime,
    end: datetime | None,
    price: str | Decimal | None = "1",
    *,
    unit: str = "hour",
    quantity: str | Decimal = "1",
    currency: str = "USD",
    market: str = "",
    resource: str = "",
    run: int = 1,
) -> LedgerInterval:
    account = one if isinstance(one, ProviderAccount) else one.account
    meter, _made = LedgerMeter.objects.get_or_create(
        team=account.team,
        account=account,
        instance=None if isinstance(one, ProviderAccount) else one,
        kind=kind,
        resource=resource,
    )
    return LedgerInterval.objects.create(
        meter=meter,
        period=DateTimeTZRange(start, end),
        unit=unit,
        unit_price=None if price is None else Decimal(price),
        quantity=Decimal(quantity),
        currency=currency,
        market=market,
        price_source=PriceSource.TYPED,
        seen_at=start,
        start_source=EdgeSource.TYPED,
        run=run,
    )


def rolled(gpu: GPU, hour: datetime, **seconds: float) -> None:
    """rolled(gpu, at("…"), working=1800, held=1800); the rest of the hour is unknown."""
    ensure_partitions(now=hour, since=hour)
    states = ("working", "held", "free", "starved", "stalled", "unknown", "stopped")
    told = {f"{state}_seconds": float(seconds.get(state, 0)) for state in states}
    told["unknown_seconds"] += 3600 - sum(seconds.values())
    GpuRollupHour.objects.filter(gpu_id=gpu.pk, bucket_at=hour).delete()
    GpuRollupHour.objects.create(gpu_id=gpu.pk, bucket_at=hour, samples=360, coverage=1, **told)


def belongs(
    instance: Instance,
    start: datetime,
    end: datetime | None = None,
    *,
    split: SplitMode = SplitMode.WHOLE,
    **fields: object,
) -> AttributionSpan:
    return AttributionSpan.objects.create(
        instance=instance, period=DateTimeTZRange(start, end), split=split, source="manual", **fields
    )
