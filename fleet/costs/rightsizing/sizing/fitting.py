"""Whether an offer holds what was measured, one check each. A check says None (it does), or what falls short.

What an offer does not say is no shortfall: it is told as something to ask about.
"""

from __future__ import annotations

from collections.abc import Callable

from fleet.costs.rightsizing.sizing.figures import Candidate, LeftAlone, Measured, Why
from fleet.costs.rightsizing.sizing.speed import is_linked, is_other_form, is_other_vendor, smallest_card_gib
from fleet.providers.base import Market, Tenancy

# On what was ever measured: a next month may take a little more than the last one.
MARGIN = 1.15
MIB = 2**20
SHARED = frozenset({Tenancy.COMMUNITY_HOST, Tenancy.FRACTION})
INTERRUPTIBLE = Market.SPOT


def needed_memory(machine: Measured) -> int:
    """Bytes of one GPU."""
    assert machine.peak_memory_bytes is not None
    return int(machine.peak_memory_bytes * MARGIN)


def of_kind(machine: Measured, offer: Candidate) -> LeftAlone | None:
    """Another make or another form of the same chip is another product; a stranger's host is no place for what ran on an own one."""
    mixed = is_other_form(machine.gpu_model, offer.gpu_model) or is_other_vendor(machine.gpu_model, offer.gpu_model)
    exposed = offer.tenancy in SHARED and machine.tenancy != offer.tenancy
    return LeftAlone(Why.OTHER_KIND) if mixed or exposed else None


def of_gpus(machine: Measured, offer: Candidate) -> LeftAlone | None:
    return LeftAlone(Why.GPUS, {"gpus": machine.working_at_once}) if offer.gpus < machine.working_at_once else None


def of_memory(machine: Measured, offer: Candidate) -> LeftAlone | None:
    need = needed_memory(machine)
    if offer.gpu_memory_bytes >= need:
        return None
    held = machine.gpu_memory_bytes
    share = round(100 * (machine.peak_memory_bytes or 0) / held) if held else None
    return LeftAlone(Why.MEMORY, {"percent": share, "gib": smallest_card_gib(need)})


def of_links(machine: Measured, offer: Candidate) -> LeftAlone | None:
    """GPUs that worked at the same time may have worked together: how fast they reach each other is part of what they are."""
    together = machine.working_at_once > 1 and is_linked(machine.gpu_model)
    return LeftAlone(Why.LINKS) if together and not is_linked(offer.gpu_model) else None


def of_host(machine: Measured, offer: Candidate) -> LeftAlone | None:
    for name, need, has in host_needs(machine, offer):
        if need is not None and has is not None and has < need:
            return LeftAlone(Why.HOST, {"what": name})
    return None


def host_needs(machine: Measured, offer: Candidate) -> list[tuple[str, float | None, float | None]]:
    """(what, needed, offered) of everything around the GPUs."""
    cores = None if machine.cpu_peak is None or machine.vcpus is None else machine.cpu_peak * machine.vcpus
    return [
        ("ram", _with_margin(machine.ram_peak_bytes), offer.ram_bytes),
        ("vcpus", cores, offer.vcpus),
        ("disk", _with_margin(machine.disk_used_bytes), offer.disk_bytes),
        ("network", machine.network_peak, offer.internet),
    ]


def not_told(machine: Measured, offer: Candidate) -> list[str]:
    return [name for name, need, has in host_needs(machine, offer) if need is not None and has is None]


def of_market(machine: Measured, offer: Candidate) -> LeftAlone | None:
    """What answers requests is not put where it may be taken away, unless it stands there already."""
    becomes = offer.market == INTERRUPTIBLE != machine.market
    return LeftAlone(Why.INTERRUPTS) if becomes and machine.serves else None


def _with_margin(need: float | None) -> float | None:
    return None if need is None else need * MARGIN


# In the order of Why: a later one means that an offer got farther.
CHECKS: tuple[Callable[[Measured, Candidate], LeftAlone | None], ...] = (
    of_kind,
    of_gpus,
    of_memory,
    of_links,
    of_host,
    of_market,
)
