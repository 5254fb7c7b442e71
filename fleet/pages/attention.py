"""What needs a person, worst first: one line a machine, with the money at stake and the readings behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import partial

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from fleet.formats import bytes_text, duration_text, money_text, number_text
from fleet.pages.machine import MachineView, mean
from fleet.providers.base import Billing
from fleet.states import GpuState
from fleet.telemetry.latest import SomeAgent
from fleet.words import state_words

HUNG, BROKEN = "hung", frozenset({"mismatch", "error"})
SHOWN = 8
# Free GPUs are in the strip and the key; they call for a decision about renting, not for a hand on the machine.
STATES = (GpuState.STALLED, GpuState.UNKNOWN, GpuState.STARVED, GpuState.HELD_IDLE)

TITLES: dict[GpuState, str | Promise] = {
    GpuState.STALLED: gettext_lazy("%(name)s makes no progress"),
    GpuState.UNKNOWN: gettext_lazy("%(name)s went quiet"),
    GpuState.STARVED: gettext_lazy("%(name)s waits for data"),
    GpuState.HELD_IDLE: gettext_lazy("%(name)s is held but idle"),
}


@dataclass(frozen=True, slots=True)
class Item:
    """One line. `mark` is a state, or "urgent" where the machine itself is at fault. `at_stake` is an hour's.

    `named` and `tell` become title and text, which only lines that are shown need: of a large fleet, few.
    """

    view: MachineView
    mark: str
    named: str | Promise
    tell: Callable[[], str]
    at_stake: Decimal | None
    rank: int
    read_at: datetime | None

    @property
    def title(self) -> str:
        return str(self.named) % {"name": self.view.instance.name}

    @property
    def text(self) -> str:
        return self.tell()

    @property
    def at_stake_text(self) -> str:
        return "" if self.at_stake is None else money_text(self.at_stake, self.view.instance.currency)


def attention(machines: Iterable[MachineView]) -> list[Item]:
    found = [item for view in machines if (item := _item(view))]
    return sorted(found, key=lambda item: (item.rank, -(item.at_stake or Decimal(0)), item.view.instance.name))


def _item(view: MachineView) -> Item | None:
    if view.state is GpuState.STOPPED:
        return None
    return _broken_agent(view) or _lost(view) or _by_state(view)


def _make(
    view: MachineView,
    *,
    mark: str,
    named: str | Promise,
    tell: Callable[[], str],
    states: Iterable[GpuState],
    rank: int,
) -> Item:
    at_stake = view.share(states) if view.tiles else view.price
    return Item(view, mark, named, tell, at_stake, rank, view.heard_at)


def _broken_agent(view: MachineView) -> Item | None:
    agent = view.agent
    if agent is None or agent.nvml_state not in {HUNG, *BROKEN}:
        return None
    hung = agent.nvml_state == HUNG
    title = _("%(name)s: its GPU driver hangs") if hung else _("%(name)s: its GPU driver does not answer")
    return _make(view, mark="urgent", named=title, tell=partial(_driver_text, agent), states=GpuState, rank=0)


def _driver_text(agent: SomeAgent) -> str:
    said = _("The agent reports and the driver does not; a reboot of the machine usually brings it back.")
    return f"{agent.nvml_detail}. {said}" if agent.nvml_detail else said


def _lost(view: MachineView) -> Item | None:
    lost = [tile for tile in view.tiles if tile.now.latest and tile.now.latest.lost]
    if not lost:
        return None
    words = ngettext("%(name)s lost a GPU", "%(name)s lost %(count)d GPUs", len(lost))
    names = ", ".join(f"GPU {tile.index}" for tile in lost)
    text = _("%(gpus)s fell off the bus. What ran there is gone; the rest of the machine still reports.")
    share = view.price * len(lost) / len(view.tiles) if view.price is not None else None
    named = words.replace("%(count)d", str(len(lost)))
    return Item(view, "urgent", named, lambda: text % {"gpus": names}, share, 0, view.heard_at)


def _by_state(view: MachineView) -> Item | None:
    """A machine without GPUs has one state that calls for a hand: silence."""
    states = view.counts if view.tiles else {GpuState.UNKNOWN}
    state = next((state for state in STATES if state in states), None)
    if state is None or (state is GpuState.UNKNOWN and not _is_silent(view)):
        return None
    tell = partial(TEXTS[state], view)
    return _make(view, mark=state.value, named=TITLES[state], tell=tell, states={state}, rank=1 + STATES.index(state))


def _is_silent(view: MachineView) -> bool:
    """A machine that never had an agent is not quiet, it is not yet watched."""
    return view.agent is not None and view.heard_at is not None and not view.reports


def _tiles_in(view: MachineView, state: GpuState) -> str:
    count = view.counts[state]
    words = ngettext("%(count)d of %(total)d GPU", "%(count)d of %(total)d GPUs", len(view.tiles))
    return words % {"count": count, "total": len(view.tiles)}


def _stalled_text(view: MachineView) -> str:
    busy = mean(tile.busy_percent for tile in view.tiles if tile.state is GpuState.STALLED)
    said = _("%(gpus)s read %(busy)d%% and compute next to nothing.")
    return said % {"gpus": _tiles_in(view, GpuState.STALLED), "busy": busy or 0}


def _quiet_text(view: MachineView) -> str:
    assert view.heard_at is not None
    silent = duration_text((view.at - view.heard_at).total_seconds())
    if view.instance.billing == Billing.FULL:
        said = _("No report for %(time)s; %(provider)s still bills it.")
    else:
        said = _("No report for %(time)s.")
    return said % {"time": silent, "provider": view.provider}


def _starved_text(view: MachineView) -> str:
    busy = mean(tile.busy_percent for tile in view.tiles if tile.state is GpuState.STARVED)
    signals = {
        name: value for tile in view.tiles if tile.state is GpuState.STARVED for name, value in tile.now.verdict.because
    }
    wait = max(float(signals.get(name, 0)) for name in ("cpu_iowait_percent", "pressure_io_percent"))
    said = _("%(gpus)s at %(busy)d%%; the machine waits for its disk %(wait)s%% of the time.")
    return said % {"gpus": _tiles_in(view, GpuState.STARVED), "busy": busy or 0, "wait": number_text(wait)}


def _held_text(view: MachineView) -> str:
    held = [tile.now.latest for tile in view.tiles if tile.state is GpuState.HELD_IDLE and tile.now.latest]
    memory = [latest.memory_used_bytes for latest in held if latest.memory_used_bytes]
    said = _("%(states)s.") % {"states": state_words(view.counts)}
    if memory:
        said += " " + _("%(memory)s of GPU memory is held.") % {"memory": bytes_text(sum(memory))}
    since, share = view.since(GpuState.HELD_IDLE), view.share({GpuState.HELD_IDLE})
    if since is None:
        return said
    seconds = (view.at - since).total_seconds()
    said += " " + _("No work for %(time)s.") % {"time": duration_text(seconds)}
    if share:
        spent = money_text(share * Decimal(seconds) / 3600, view.instance.currency)
        said += " " + _("About %(money)s so far, at today's price.") % {"money": spent}
    return said


TEXTS: dict[GpuState, Callable[[MachineView], str]] = {
    GpuState.STALLED: _stalled_text,
    GpuState.UNKNOWN: _quiet_text,
    GpuState.STARVED: _starved_text,
    GpuState.HELD_IDLE: _held_text,
}
