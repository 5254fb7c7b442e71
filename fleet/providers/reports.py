"""What a provider itself reports of a machine: use that it measured, and what it announced."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fleet.providers.values import Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderUsage:
    """What the provider itself measured of one machine. None = it does not say.

    Shown as the provider's word; never enough to call a machine idle. Percent is 0 to 100, one figure per GPU where there are several.
    """

    ref: Ref
    at: datetime | None = None
    gpu_utilization_percent: tuple[float, ...] = ()
    gpu_memory_percent: tuple[float, ...] = ()
    cpu_percent: float | None = None
    memory_percent: float | None = None
    network_received_bytes_per_s: float | None = None
    network_sent_bytes_per_s: float | None = None
    disk_read_bytes_per_s: float | None = None
    disk_written_bytes_per_s: float | None = None


class NoticeKind(StrEnum):
    INTERRUPTION = "interruption"  # spot capacity is being taken back
    MAINTENANCE = "maintenance"
    RETIREMENT = "retirement"  # the host goes away for good
    UNPAID = "unpaid"  # locked for want of money
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What the provider announced for one machine. `key` is the same each time the same notice is read."""

    ref: Ref
    kind: NoticeKind
    key: str
    starts_at: datetime | None = None
    detail: str = ""
