"""The sentence that the page opens with: what rent runs at, and how much of it buys nothing. The same reading as strip and map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from fleet.formats import amounts_text
from fleet.pages.fleet import Fleet, Key
from fleet.pages.idle.wasters import Waster, lost_in_all
from fleet.providers.rows import HOURS_PER_MONTH
from fleet.states import BUYS_NOTHING, GpuState


@dataclass(frozen=True)
class Lead:
    """`wasters`: all machines of the fleet with a GPU that buys nothing now."""

    fleet: Fleet
    wasters: Sequence[Waster]
    stops_under_way: int
    planned: int

    @cached_property
    def nothing(self) -> dict[str, Decimal]:
        """What buys nothing an hour, by currency; one of which nothing is wasted is left out."""
        return {currency: amount for currency, amount in self.fleet.share(BUYS_NOTHING).items() if amount}

    @property
    def stalled(self) -> dict[str, Decimal]:
        """The part of `nothing` that the strip does not call idle: GPUs that look busy."""
        return {currency: amount for currency, amount in self.fleet.share({GpuState.STALLED}).items() if amount}

    @property
    def idle(self) -> dict[str, Decimal]:
        return {currency: amount for currency, amount in self.fleet.idle_amounts.items() if amount}

    @property
    def rent_text(self) -> str:
        return amounts_text({currency: amount for currency, amount in self.fleet.amounts.items() if amount})

    @property
    def gpus(self) -> int:
        return sum(waster.gpus for waster in self.wasters)

    @property
    def per_month(self) -> dict[str, Decimal]:
        return {currency: amount * HOURS_PER_MONTH for currency, amount in self.nothing.items()}

    @property
    def lost(self) -> dict[str, Decimal]:
        return lost_in_all(self.wasters)

    @property
    def loses_more(self) -> bool:
        """Whether more than `lost` was lost: of some GPUs nobody knows since when, or what an hour costs."""
        return any(not waster.lost_is_all for waster in self.wasters)

    @property
    def reports(self) -> bool:
        return any(view.reports and view.tiles for view in self.fleet.machines)

    @property
    def keys(self) -> list[Key]:
        """The states that GPUs are in, what buys nothing first."""
        found = [key for key in self.fleet.keys if key.count]
        return sorted(found, key=lambda key: key.state not in BUYS_NOTHING)

    @property
    def bar(self) -> list[tuple[str, str]]:
        parts = sorted(self.fleet.bar, key=lambda part: part[0] not in BUYS_NOTHING)
        return [(state.value, width) for state, width in parts]
