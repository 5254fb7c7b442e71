"""Machines with a GPU that buys nothing now: which, since when, and what that has cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property

from django.utils.translation import gettext as _

from fleet.formats import duration_text
from fleet.pages.fleet import Fleet
from fleet.pages.machine import MachineView, Tile
from fleet.states import BUYS_NOTHING, GpuState
from fleet.words import state_word, state_words

HOUR_SECONDS = 3600


@dataclass(frozen=True)
class Waster:
    view: MachineView

    @cached_property
    def tiles(self) -> list[Tile]:
        return [tile for tile in self.view.tiles if tile.state in BUYS_NOTHING]

    @property
    def gpus(self) -> int:
        return len(self.tiles)

    @property
    def state(self) -> GpuState:
        """What it is named by: the state of most of its wasted GPUs."""
        counts = {state: count for state, count in self.view.counts.items() if state in BUYS_NOTHING}
        return self.view.state if self.view.state in counts else max(counts, key=lambda state: counts[state])

    @cached_property
    def price(self) -> Decimal | None:
        """Of an hour of what buys nothing; None = the machine's price is not known."""
        return self.view.share(BUYS_NOTHING)

    def began(self, tile: Tile) -> datetime | None:
        """Since when this GPU has bought nothing; not from before the machine came up. None of a stalled one: it reads as busy."""
        since = tile.now.latest.idle_since if tile.now.latest else None
        if since is None or tile.state is GpuState.STALLED:
            return None
        return max(since, self.view.instance.state_since)

    @cached_property
    def since(self) -> datetime | None:
        """Since when all of them have; None where that is not known of one."""
        moments = [self.began(tile) for tile in self.tiles]
        known = [moment for moment in moments if moment]
        return max(known) if known and len(known) == len(moments) else None

    @cached_property
    def lost(self) -> Decimal | None:
        """At the present price, over the GPUs of which it is known since when. None: nothing of it is known."""
        if self.view.price is None:
            return None
        seconds = [(self.view.at - begun).total_seconds() for tile in self.tiles if (begun := self.began(tile))]
        if not seconds:
            return None
        return self.view.price / len(self.view.tiles) * Decimal(round(sum(seconds))) / HOUR_SECONDS

    @cached_property
    def lost_is_all(self) -> bool:
        return self.lost is not None and self.since is not None

    @property
    def words(self) -> str:
        """What it is doing, and for how long: "2 of 8 free for 12 h 40 min"."""
        states = self._states()
        if self.since is None:
            return states
        lasted = duration_text((self.view.at - self.since).total_seconds())
        return _("%(state)s for %(time)s") % {"state": states, "time": lasted}

    def _states(self) -> str:
        counts = {state: count for state, count in self.view.counts.items() if state in BUYS_NOTHING}
        if len(counts) > 1:
            return state_words(counts)
        word = state_word(self.state)
        if self.gpus == len(self.view.tiles):
            return word
        said = {"count": self.gpus, "total": len(self.view.tiles), "state": word.lower()}
        return _("%(count)d of %(total)d %(state)s") % said


def wasters_of(fleet: Fleet) -> list[Waster]:
    """The dearest first; those without a price last, the largest of them first."""
    found = [Waster(view) for view in fleet.machines if any(state in BUYS_NOTHING for state in view.counts)]
    return sorted(found, key=lambda one: (one.price is None, -(one.price or 0), -one.gpus, one.view.instance.name))


def lost_in_all(wasters: Iterable[Waster]) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = {}
    for one in wasters:
        if one.lost is not None:
            currency = one.view.instance.currency
            sums[currency] = sums.get(currency, Decimal(0)) + one.lost
    return sums
