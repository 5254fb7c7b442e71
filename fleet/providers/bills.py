"""What providers say they charged: one line of a bill, in our words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum

from fleet.providers.values import Money

DAY = timedelta(days=1)


class ChargeKind(StrEnum):
    """What a line of a bill is for. OTHER: the provider has a word for it that nobody mapped; it is kept in `raw_kind`."""

    COMPUTE = "compute"
    DISK = "disk"
    NETWORK_VOLUME = "network_volume"
    EGRESS = "egress"
    ADDRESS = "address"
    LICENCE = "licence"
    COMMITMENT = "commitment"
    CREDIT = "credit"
    REFUND = "refund"
    TAX = "tax"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class BilledCharge:
    """`amount` of [start, end), as the provider charges it; below zero: credits and refunds.

    `external_id`: the machine's, "" where the line names none. `resource`: of a volume, an address. `line_id`: the same whenever this line is
    read again, whatever its amount has become meanwhile; made of what it is about where the provider has no id for it.
    """

    line_id: str
    kind: ChargeKind
    raw_kind: str
    start: datetime
    end: datetime
    amount: Money
    external_id: str = ""
    resource: str = ""
    quantity: Decimal | None = None
    unit: str = ""
    description: str = ""


def days_between(start: datetime, end: datetime) -> Iterator[datetime]:
    """The first instants of the days of UTC that [start, end) touches."""
    day = start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    while day < end:
        yield day
        day += DAY


class LineIds:
    """Makes ids of what lines are about: those about the same get numbers, in the provider's order."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()

    def of(self, *parts: object) -> str:
        word = ":".join(str(part) for part in parts)
        self._seen[word] += 1
        return word if self._seen[word] == 1 else f"{word}:{self._seen[word]}"
