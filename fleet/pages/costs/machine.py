"""What one machine costs: its month by charge and state, and the intervals of the ledger that this is reckoned from."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.utils import timezone

from fleet.costs.book.models import LedgerInterval
from fleet.costs.ledger.intervals import EdgeSource, Meter, Unit
from fleet.costs.month import Month
from fleet.costs.spend.spend import By, Where, spend
from fleet.costs.words import METERS
from fleet.inventory.models import Instance
from fleet.pages.costs.went import useful_hour
from fleet.panels import Context
from fleet.teams.access import TeamRequest

SHOWN_INTERVALS = 12


@dataclass(frozen=True, slots=True)
class Line:
    """One interval as it is shown. `half_width_seconds`: how far its start may be off."""

    word: str
    start: datetime
    end: datetime | None
    unit_price: Decimal | None
    unit: str
    quantity: Decimal
    currency: str
    half_width_seconds: int
    is_told: bool

    @classmethod
    def of(cls, row: LedgerInterval) -> Line:
        return cls(
            str(METERS[Meter(row.meter.kind)]),
            row.period.lower,
            row.period.upper,
            row.unit_price,
            row.unit,
            row.quantity.normalize(),
            row.currency,
            row.start_half_width_seconds,
            row.start_source == EdgeSource.PROVIDER,
        )

    @property
    def is_charged(self) -> bool:
        return self.unit != Unit.NONE


def machine_costs(request: TeamRequest, instance: Instance) -> Context:
    month = Month.of(request.team, now=timezone.now())
    found = spend(
        team=request.team,
        start=month.first,
        end=month.next_first,
        by=(By.METER,),
        where=Where(instances=(instance.pk,)),
    )
    rows = LedgerInterval.objects.filter(meter__instance=instance).select_related("meter").order_by("-period")
    return {
        "instance": instance,
        "month": month,
        "spend": found,
        "meters": [(METERS[Meter(str(key[0]))], one) for key, one in found.rows.items()],
        "states": [(state, amount) for state, amount in found.all.states.items() if amount],
        "useful_hour": useful_hour(found.all),
        "intervals": [Line.of(row) for row in rows[:SHOWN_INTERVALS]],
    }
