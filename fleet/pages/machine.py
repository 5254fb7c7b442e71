"""One machine as pages show it: its GPUs' tiles, its money, and the few words that say how it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from msgspec import Struct

from fleet.formats import UNKNOWN, brief_duration_text, duration_text, money_text, sign_of
from fleet.inventory.models import Instance
from fleet.inventory.prices import price_now
from fleet.inventory.words import drift_words
from fleet.providers.drift import Card, Rented, differences
from fleet.providers.registry import adapters
from fleet.states import IDLE_MONEY, GpuState
from fleet.telemetry.latest import GpuNow, MachineNow, SomeAgent, SomeHost, limits_for
from fleet.words import count_words, state_word, state_words

# The order in which states are listed everywhere.
ORDER = tuple(GpuState)
NO_GPU = "none"


# A struct: a page has ten thousand, and a frozen dataclass takes several times as long to make.
class Tile(Struct, frozen=True, gc=False):
    """One GPU. Percents are whole and None where the present state makes them meaningless or nothing was read."""

    gpu_id: int | None
    index: int
    state: GpuState
    busy_percent: int | None
    memory_percent: int | None
    total_bytes: int | None
    now: GpuNow

    @classmethod
    def of(cls, now: GpuNow) -> Tile:
        latest, state = now.latest, now.verdict.state
        shown = None if state in {GpuState.UNKNOWN, GpuState.STOPPED} else latest
        total = (latest.memory_total_bytes if latest else None) or now.gpu.memory_total_bytes
        busy = shown.utilization_percent if shown else None
        used = shown.memory_used_bytes if shown else None
        return cls(
            gpu_id=now.gpu.pk,
            index=now.gpu.index,
            state=state,
            busy_percent=None if busy is None else round(busy),
            memory_percent=None if used is None or not total else round(100 * used / total),
            total_bytes=total,
            now=now,
        )

    @property
    def read_epoch(self) -> str:
        return epoch_text(self.now.latest.sampled_at if self.now.latest else None)


def epoch_text(moment: datetime | None) -> str:
    return f"{moment.timestamp():.3f}" if moment else ""


def mean(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return round(sum(known) / len(known)) if known else None


def percent_text(value: int | None) -> str:
    return _("unknown") if value is None else f"{value}%"


def tile_html(tile: Tile) -> str:
    key = f' data-gpu="{tile.gpu_id:d}"' if tile.gpu_id else ""
    busy = "" if tile.busy_percent is None else f"--u:{tile.busy_percent:d};"
    memory = "" if tile.memory_percent is None else f"--m:{tile.memory_percent:d}"
    word = "" if tile.busy_percent is None else f"{tile.busy_percent:d}"
    total = f' data-total="{tile.total_bytes:d}"' if tile.total_bytes else ""
    return f'<i class="gpu" data-s="{tile.state.value}"{key}{total} style="{busy}{memory}"><b>{word}</b></i>'


def mark_html(tile: Tile) -> str:
    key = f' data-gpu="{tile.gpu_id:d}"' if tile.gpu_id else ""
    return f'<i class="gpu" data-s="{tile.state.value}"{key}></i>'


@dataclass(frozen=True)
class MachineView:
    machine: MachineNow
    at: datetime

    @property
    def instance(self) -> Instance:
        return self.machine.instance

    @property
    def agent(self) -> SomeAgent | None:
        return self.machine.agent

    @cached_property
    def tiles(self) -> list[Tile]:
        return [Tile.of(gpu) for gpu in self.machine.gpus]

    @cached_property
    def drift(self) -> list[str]:
        """Why this is not what was rented; empty where it is, or where nothing can be compared."""
        machine = self.instance
        cards = [
            Card(now.gpu.name, now.gpu.memory_total_bytes, bool(now.gpu.mig_parent_uuid)) for now in self.machine.gpus
        ]
        found = differences(Rented(machine.gpu_model, machine.gpu_count, machine.gpu_memory_mib), cards)
        return [drift_words(one.kind, one.found, one.rented) for one in found]

    @cached_property
    def counts(self) -> dict[GpuState, int]:
        found = Counter(tile.state for tile in self.tiles)
        return {state: found[state] for state in ORDER if found[state]}

    @cached_property
    def state(self) -> GpuState:
        return self.machine.state

    @property
    def worst(self) -> str:
        """The state that the block's edge shows; "none" for a machine that reports and has no GPU."""
        return NO_GPU if not self.tiles and self.reports else self.state.value

    @property
    def stale_seconds(self) -> int:
        """After which silence the page's script turns a GPU unknown, as the server would."""
        return round(limits_for(self.agent, self.machine.scrape_seconds).stale_after.total_seconds())

    @cached_property
    def gpu_read_at(self) -> datetime | None:
        return max((tile.now.latest.sampled_at for tile in self.tiles if tile.now.latest), default=None)

    @property
    def host_read_at(self) -> datetime | None:
        return self.machine.host.sampled_at if self.machine.host else None

    @cached_property
    def heard_at(self) -> datetime | None:
        """The newest reading of whatever kind. While a driver hangs the machine is heard and its GPUs are not read."""
        return max((moment for moment in (self.gpu_read_at, self.host_read_at) if moment), default=None)

    @property
    def read_at(self) -> datetime | None:
        """The age of what blocks and rows show: the GPUs' figures, or the machine's own where it has no GPU."""
        return self.gpu_read_at if self.tiles else self.host_read_at

    @property
    def period_seconds(self) -> int:
        return max(self.agent.report_seconds if self.agent else 0, self.machine.scrape_seconds) or 10

    @property
    def reports(self) -> bool:
        return self._is_fresh(self.heard_at)

    def _is_fresh(self, moment: datetime | None) -> bool:
        return moment is not None and (self.at - moment).total_seconds() <= 3 * self.period_seconds

    @property
    def host(self) -> SomeHost | None:
        """The machine's own figures while they are of now."""
        return self.machine.host if self._is_fresh(self.host_read_at) else None

    @cached_property
    def price(self) -> Decimal | None:
        return price_now(self.instance)

    def share(self, states: Iterable[GpuState]) -> Decimal | None:
        """The part of the price that falls to GPUs in these states; None without a price or without GPUs."""
        if self.price is None or not self.tiles:
            return None
        wanted = set(states)
        return self.price * sum(tile.state in wanted for tile in self.tiles) / len(self.tiles)

    @cached_property
    def idle_price(self) -> Decimal | None:
        return self.share(IDLE_MONEY)

    @property
    def currency_sign(self) -> str:
        return sign_of(self.instance.currency)

    @cached_property
    def price_text(self) -> str:
        return UNKNOWN if self.price is None else money_text(self.price, self.instance.currency)

    @cached_property
    def busy_percent(self) -> int | None:
        return mean(tile.busy_percent for tile in self.tiles)

    @cached_property
    def memory_percent(self) -> int | None:
        return mean(tile.memory_percent for tile in self.tiles)

    @property
    def provider(self) -> str:
        account = self.instance.account
        adapter = adapters().get(account.kind)
        return _(adapter.label) if adapter else account.name

    @property
    def where(self) -> str:
        return " · ".join(part for part in (self.provider, self.instance.region) if part)

    @cached_property
    def gpu_label(self) -> str:
        """The GPU's short name: the listed model, else what the driver calls it."""
        driver_name = next((tile.now.gpu.name for tile in self.tiles if tile.now.gpu.name), "")
        return self.instance.gpu_model or driver_name.removeprefix("NVIDIA ") or self.instance.gpu_raw

    @cached_property
    def gpus_label(self) -> str:
        if not self.tiles:
            return _("no GPU") if self.reports else _("GPUs unknown")
        return f"{len(self.tiles)} × {self.gpu_label}" if self.gpu_label else str(len(self.tiles))

    @property
    def people_label(self) -> str:
        owner = self.instance.owner.display_name if self.instance.owner else _("no owner")
        project = self.instance.project.name if self.instance.project else _("no project")
        return f"{owner}, {project}"

    @cached_property
    def states_label(self) -> str:
        return state_words(self.counts) or self.gpus_label

    @property
    def read_epoch(self) -> str:
        return epoch_text(self.read_at)

    @property
    def tiles_html(self) -> SafeString:
        """Numbers and our own words only, so nothing here needs escaping; written by hand because a page has thousands."""
        columns = min(len(self.tiles), 4) if len(self.tiles) <= 16 else 8
        tiles = "".join(map(tile_html, self.tiles))
        return SafeString(f'<span class="tiles" style="--cols:{max(columns, 1)}" aria-hidden="true">{tiles}</span>')

    @property
    def marks_html(self) -> SafeString:
        """The GPUs as plain marks, for a row; numbers and our own words only, like tiles_html."""
        return SafeString("".join(mark_html(tile) for tile in self.tiles))

    @property
    def badge_words(self) -> str:
        """The state's word, with how many of the GPUs it covers where not all do."""
        word = state_word(self.state)
        if not self.partly or self.state is GpuState.WORKING:
            return word
        said = _("%(count)d of %(total)d %(state)s")
        return said % {"count": self.counts[self.state], "total": len(self.tiles), "state": word.lower()}

    @property
    def row_words(self) -> str:
        """How long, beside the state's word; nothing where that would only repeat it."""
        words = "" if self.state in {GpuState.WORKING, GpuState.STALLED} else self.verdict_words
        return "" if words.casefold() == state_word(self.state).casefold() else words

    def since(self, state: GpuState) -> datetime | None:
        """Since when all GPUs in this state have been in it, where that is known."""
        if state is GpuState.STOPPED:
            return self.instance.state_since
        if state is GpuState.UNKNOWN:
            return self.heard_at
        moments = [tile.now.latest.idle_since for tile in self.tiles if tile.state is state and tile.now.latest]
        known = [moment for moment in moments if moment]
        return max(known) if known and len(known) == len(moments) else None

    @property
    def partly(self) -> bool:
        """Whether only some of the GPUs are in the state that the machine is named by."""
        return 0 < self.counts.get(self.state, 0) < len(self.tiles)

    @property
    def headline(self) -> str:
        """The second line of a block: the verdict, or the GPU's name while all is well."""
        if not self.tiles and self.reports:
            return _("no GPU")
        if self.partly and self.state is not GpuState.WORKING:
            return count_words(self.state, self.counts[self.state])
        return self._verdict(brief_duration_text) or self.gpu_label

    @property
    def verdict_words(self) -> str:
        """How long the machine has been in its state, in the words of that state; "" while it works."""
        return self._verdict(duration_text)

    def _verdict(self, text_of: Callable[[float], str]) -> str:
        if self.state is GpuState.WORKING:
            return ""
        since = self.since(self.state)
        lasted = text_of((self.at - since).total_seconds()) if since else ""
        if self.state is GpuState.UNKNOWN:
            return self._unknown_words(lasted)
        if self.state is GpuState.HELD_IDLE:
            return _("idle %(time)s") % {"time": lasted} if lasted else _("held idle")
        if self.state is GpuState.FREE:
            return _("free %(time)s") % {"time": lasted} if lasted else _("free")
        if self.state is GpuState.STOPPED:
            return _("off %(time)s") % {"time": lasted}
        return _("stalled") if self.state is GpuState.STALLED else _("waits for data")

    def _unknown_words(self, lasted: str) -> str:
        if any(tile.now.latest and tile.now.latest.lost for tile in self.tiles):
            return _("GPU lost")
        if self.agent is None and not self.machine.scrape_seconds:
            return _("no agent")
        if self.heard_at is None:
            return _("no report yet")
        return _("silent %(time)s") % {"time": lasted} if not self.reports else _("not readable")
