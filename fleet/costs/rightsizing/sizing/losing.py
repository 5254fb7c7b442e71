"""What a change costs or loses beside money, in the order in which people ask."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from fleet.costs.rightsizing.sizing.figures import Candidate, Loses, Loss, Measured
from fleet.costs.rightsizing.sizing.fitting import INTERRUPTIBLE, not_told
from fleet.costs.rightsizing.sizing.speed import lacks_fp8
from fleet.providers.base import Market

# Told as slower from here on: the catalogue's rates are no better.
NOTICED = 0.95


def losses_of(machine: Measured, offer: Candidate, *, speed: float, hours: Decimal) -> tuple[Loss, ...]:
    return (*_moving(machine, offer), *_working(machine, offer, speed), *_paying(machine, offer, hours))


def _moving(machine: Measured, offer: Candidate) -> Iterator[Loss]:
    """Whatever the change is, it is another machine: none of the providers changes the GPUs of one that runs."""
    yield Loss(Loses.NEW_MACHINE, {"bytes": machine.disk_used_bytes, "seconds": _seconds_to_move(machine, offer)})
    if machine.loses_local_disk:
        yield Loss(Loses.LOCAL_DISK)
    if offer.provider != machine.provider:
        yield Loss(Loses.OTHER_PROVIDER)
    elif offer.region != machine.region and offer.region:
        yield Loss(Loses.OTHER_REGION, {"region": offer.region})
    if machine.serves:
        yield Loss(Loses.REQUESTS)


def _working(machine: Measured, offer: Candidate, speed: float) -> Iterator[Loss]:
    if speed < NOTICED:
        yield Loss(Loses.SLOWER, {"speed": f"{speed:.1f}", "times": f"{1 / speed:.1f}"})
    if lacks_fp8(machine.gpu_model, offer.gpu_model):
        yield Loss(Loses.NO_FP8)
    if machine.holding_at_once > offer.gpus:
        yield Loss(Loses.HELD_MEMORY, {"gpus": machine.holding_at_once - offer.gpus})
    if offer.market == INTERRUPTIBLE != machine.market:
        yield Loss(Loses.INTERRUPTIBLE)


def _paying(machine: Measured, offer: Candidate, hours: Decimal) -> Iterator[Loss]:
    if offer.market == Market.RESERVED != machine.market:
        yield Loss(Loses.COMMITTED, {"hours": str(hours)})
    if offer.priced_on is not None:
        yield Loss(Loses.DATED, {"day": offer.priced_on.isoformat()})
    if missing := not_told(machine, offer):
        yield Loss(Loses.NOT_TOLD, {"what": missing})


def _seconds_to_move(machine: Measured, offer: Candidate) -> float | None:
    """At the pace that the machine's network was seen to have, and no faster than the offer's."""
    paces = [pace for pace in (machine.network_peak, offer.internet) if pace]
    if machine.disk_used_bytes is None or not machine.network_peak:
        return None
    return machine.disk_used_bytes / min(paces)
