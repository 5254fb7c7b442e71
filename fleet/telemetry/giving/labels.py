"""Whose series it is. dcgm-exporter's labels for a GPU, without the two that repeat others (`device`, `pci_bus_id`), and ours for its machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet.inventory.models import Instance

Labels = dict[str, str]


def machine_labels(instance: Instance) -> Labels:
    """Two machines of a team may have one name: `instance_id` tells them apart."""
    return {
        "instance": instance.name,
        "instance_id": str(instance.pk),
        "provider": instance.account.kind,
        "project": instance.project.slug if instance.project else "",
    }


def gpu_labels(card: Mapping[str, Any], *, hostname: str, machine: Labels) -> Labels:
    """`card`: a row of fleet_gpu. A MIG instance that came from dcgm-exporter has its card's UUID and a number, ours has a UUID of its own."""
    uuid, number, parent = card["uuid"], "", card["mig_parent_uuid"]
    if parent and uuid.startswith(f"{parent}/"):
        # All that follows, so that no two of a machine's UUIDs become one series.
        uuid, number = parent, uuid[len(parent) + 1 :]
    return {
        "gpu": str(card["index"]),
        "UUID": uuid,
        "modelName": card["name"],
        "GPU_I_ID": number,
        "GPU_I_PROFILE": card["mig_profile"],
        "Hostname": hostname or machine["instance"],
        **machine,
    }
