"""What machines and their agents said last, and since when a machine is what it is now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Max
from msgspec import Struct

from fleet.inventory.models import EnvironmentReport
from fleet.telemetry.models import Agent, HostLatest, MachineEvent

# A driver in one of these tells nothing, and a program that waits for it neither.
_HUNG = frozenset({"hung", "mismatch", "error"})
# What an agent said of its driver longer ago is no news of it: it reports every 15 s.
HEARTBEAT_COUNTS = timedelta(minutes=5)


class HostRow(Struct, frozen=True, gc=False):
    sampled_at: datetime
    cpu_percent: float | None
    disk_read_bytes_per_second: float | None
    disk_write_bytes_per_second: float | None
    network_rx_bytes_per_second: float | None
    network_tx_bytes_per_second: float | None
    ssh_sessions: int | None
    jupyter_busy_kernels: int | None
    detail_of_kernels: Any

    @property
    def kernel_active_at(self) -> datetime | None:
        """None also for what no clock can have said."""
        try:
            return datetime.fromtimestamp(float(self.detail_of_kernels), UTC)
        except (TypeError, ValueError, OverflowError, OSError):
            return None


class AgentRow(Struct, frozen=True, gc=False):
    enrolled_at: datetime
    heartbeat_at: datetime | None
    batch_at: datetime | None
    nvml_state: str
    interval_seconds: int
    report_seconds: int
    clock_jumped_at: datetime | None

    def answers(self, now: datetime) -> bool:
        """Whether its GPUs' driver does, by what it said in time."""
        heard = self.heartbeat_at is not None and now - self.heartbeat_at <= HEARTBEAT_COUNTS
        return not (heard and self.nvml_state in _HUNG)


def hosts_of(instance_ids: Sequence[int]) -> dict[int, HostRow]:
    rows = HostLatest.objects.filter(instance__in=instance_ids)
    columns = (*HostRow.__struct_fields__[:-1], "detail__jupyter_last_activity_at")
    return {pk: HostRow(*values) for pk, *values in rows.values_list("instance_id", *columns)}


def agents_of(instance_ids: Sequence[int]) -> dict[int, AgentRow]:
    rows = Agent.objects.filter(instance__in=instance_ids)
    return {pk: AgentRow(*values) for pk, *values in rows.values_list("instance_id", *AgentRow.__struct_fields__)}


def changed_of(instance_ids: Sequence[int], *, since: datetime) -> dict[int, datetime]:
    """When last since then a machine's agent began, or found other software: a boot, another image, another driver. Two queries."""
    reports = EnvironmentReport.objects.filter(instance__in=instance_ids, reported_at__gte=since)
    begins = MachineEvent.objects.filter(instance__in=instance_ids, kind="agent_started", at__gte=since)
    found: dict[int, datetime] = dict(reports.order_by().values_list("instance").annotate(Max("reported_at")))
    for pk, at in begins.order_by().values_list("instance").annotate(Max("at")):
        found[pk] = max(at, found.get(pk, at))
    return found
