"""What a team's page is written from: the same number of queries however large the fleet. Old readings are left out here."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from fleet.inventory.models import GPU, Instance
from fleet.telemetry.giving.labels import Labels, gpu_labels, machine_labels
from fleet.telemetry.giving.names import HOST_FIELDS
from fleet.telemetry.giving.text import label_set
from fleet.telemetry.latest import MachineNow, limits_for, machines_now
from fleet.telemetry.models import GpuReading, HostLatest, MachineEvent
from fleet.telemetry.rollups.models import GpuStateTotal
from fleet.telemetry.state_codes import SECONDS_COLUMNS

# DCGM keeps the last XID until the driver is loaded again, which nobody tells us of.
XID_KEPT = timedelta(hours=24)

GPU_FACTS = ("pk", "instance_id", "uuid", "index", "name", "mig_parent_uuid", "mig_profile")
GPU_READ = (
    "sampled_at",
    "lost",
    "memory_total_bytes",
    "health",
    *(field.name for field in GpuReading._meta.get_fields()),
)

# Labels as they stand on the page, and readings by name.
Reading = tuple[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Fleet:
    """`gpus` and `hosts` hold fresh readings only. `state_seconds`: in the order of SECONDS_COLUMNS. `xids`: the newest of each GPU."""

    machines: list[tuple[str, MachineNow]]
    gpus: list[Reading]
    hosts: list[Reading]
    state_seconds: list[tuple[str, tuple[float, ...]]]
    xids: list[tuple[str, int]]


def read_fleet(team_ids: Collection[int], *, now: datetime) -> Fleet:
    rows = Instance.objects.filter(gone_at=None, team_id__in=team_ids)
    rows = rows.select_related("account", "project").order_by("pk")
    labels = {row.pk: machine_labels(row) for row in rows}
    sets = {pk: label_set(one) for pk, one in labels.items()}
    machines = machines_now(list(rows), now=now, brief=True)
    fresh_since = {machine.instance.pk: now - stale_after(machine) for machine in machines}
    cards = _cards(fresh_since)
    gpu_sets = _gpu_sets(cards, machines, labels)
    return Fleet(
        machines=[(sets[machine.instance.pk], machine) for machine in machines],
        gpus=[(gpu_sets[card["pk"]], card) for card in cards if _is_fresh(card, fresh_since[card["instance_id"]])],
        hosts=_hosts(sets, fresh_since),
        state_seconds=_state_seconds(gpu_sets, fresh_since),
        xids=_xids(gpu_sets, fresh_since, now),
    )


def stale_after(machine: MachineNow) -> timedelta:
    """The pages' own measure: three reports of 10 s, or as long as this machine's agent and exporters need."""
    return limits_for(machine.agent, machine.scrape_seconds).stale_after


def _cards(instance_ids: Iterable[int]) -> list[dict[str, Any]]:
    """Every GPU and MIG instance that is there. A card that is cut into instances has power and temperature of its own."""
    latest = [f"latest__{name}" for name in GPU_READ]
    rows = GPU.objects.filter(instance_id__in=instance_ids, removed_at=None).order_by("pk")
    names = (*GPU_FACTS, *GPU_READ)
    return [dict(zip(names, row, strict=True)) for row in rows.values_list(*GPU_FACTS, *latest)]


def _is_fresh(card: Mapping[str, Any], since: datetime) -> bool:
    """A lost GPU has no readings, whatever its row still holds."""
    return card["sampled_at"] is not None and card["sampled_at"] >= since and not card["lost"]


def _gpu_sets(cards: list[dict[str, Any]], machines: list[MachineNow], labels: Mapping[int, Labels]) -> dict[int, str]:
    hostnames = {machine.instance.pk: machine.agent.hostname for machine in machines if machine.agent}
    return {
        card["pk"]: label_set(
            gpu_labels(card, hostname=hostnames.get(card["instance_id"], ""), machine=labels[card["instance_id"]])
        )
        for card in cards
    }


def _hosts(sets: Mapping[int, str], fresh_since: Mapping[int, datetime]) -> list[Reading]:
    rows = HostLatest.objects.filter(instance_id__in=fresh_since).order_by("pk")
    return [
        (sets[row["instance_id"]], row)
        for row in rows.values("instance_id", "sampled_at", *HOST_FIELDS)
        if row["sampled_at"] >= fresh_since[row["instance_id"]]
    ]


def _state_seconds(gpu_sets: Mapping[int, str], instance_ids: Iterable[int]) -> list[tuple[str, tuple[float, ...]]]:
    rows = GpuStateTotal.objects.filter(gpu__instance_id__in=instance_ids).order_by("pk")
    found = rows.values_list("gpu_id", *SECONDS_COLUMNS.values())
    return [(gpu_sets[pk], seconds) for pk, *seconds in found if pk in gpu_sets]


def _xids(gpu_sets: Mapping[int, str], instance_ids: Iterable[int], now: datetime) -> list[tuple[str, int]]:
    rows = MachineEvent.objects.filter(
        instance_id__in=instance_ids,
        kind="xid",
        gpu__isnull=False,
        code__isnull=False,
        at__gt=now - XID_KEPT,
        at__lte=now,
    )
    newest = rows.order_by("gpu_id", "-at", "-pk").distinct("gpu_id").values_list("gpu_id", "code")
    return [(gpu_sets[pk], code) for pk, code in newest if pk in gpu_sets and code is not None]
