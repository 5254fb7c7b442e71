"""What it means to stop or to end a machine: once as data to reckon with, once in words to show."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Sign(StrEnum):
    """How a fate is marked: charged no more, still charged, kept, lost, not promised, no answer."""

    OFF = "off"
    PAID = "pay"
    KEPT = "kept"
    LOST = "lost"
    RISK = "risk"
    NOTHING = "na"


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of one thing. `word` and `note` are English message ids."""

    sign: Sign
    word: str
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What one way to end or pause a machine does to its GPUs, money and disks. `event` and `note` are English message ids."""

    event: str
    note: str = ""
    gpus: Fate
    disks_billing: Fate
    volumes: Fate
    local_disk: Fate
    return_: Fate


class Part(StrEnum):
    """What is charged for or can be lost, one by one."""

    COMPUTE = "compute"  # the GPUs and the machine around them
    CONTAINER_DISK = "container_disk"
    LOCAL_DISK = "local_disk"  # instance store, scratch
    BOOT_DISK = "boot_disk"
    DATA_DISK = "data_disk"
    NETWORK_VOLUME = "network_volume"
    PUBLIC_ADDRESS = "public_address"
    MEMORY = "memory"
    GPU_SLOT = "gpu_slot"  # starting again needs free capacity
    PREPAID_TERM = "prepaid_term"
    SAVED_IMAGES = "saved_images"


@dataclass(frozen=True, slots=True, kw_only=True)
class StopSemantics:
    """What a stop and an end mean at this provider: the confirmation before the click and the money afterwards are made from it.

    `quantum_seconds`: use is rounded up to it. `settle_seconds`: how long what was accepted may take before a listing shows anything of it.
    `rate_has_disks`: whether the rate of a running machine has its disks in it; else they are charged beside it, at the storage rate.
    `zero_balance` is an English message id. `source` names where it was read, `confirmed` whether a bill has shown it.
    """

    can_stop: bool
    billed_when_stopped: frozenset[Part] = frozenset()
    lost_on_stop: frozenset[Part] = frozenset()
    billed_after_terminate: frozenset[Part] = frozenset()
    lost_on_terminate: frozenset[Part] = frozenset()
    quantum_seconds: int = 1
    minimum_seconds: int = 0
    settle_seconds: int = 120
    rate_has_disks: bool = True
    currency: str = "USD"
    zero_balance: str = ""
    source: str = ""
    confirmed: bool = False

    DATA: ClassVar[frozenset[Part]] = frozenset(
        {Part.CONTAINER_DISK, Part.LOCAL_DISK, Part.BOOT_DISK, Part.DATA_DISK, Part.MEMORY}
    )

    @property
    def stop_loses_data(self) -> bool:
        return bool(self.lost_on_stop & self.DATA)

    @property
    def terminate_loses_data(self) -> bool:
        return bool(self.lost_on_terminate & self.DATA)
