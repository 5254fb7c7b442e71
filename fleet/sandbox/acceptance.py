"""The simulated agents' acceptance test: what such a machine reaches, but for one whose card sits in half a slot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fleet.sandbox.cast import OFFERS, seed_of
from fleet.sandbox.client import IngestClient, RefusedError
from fleet.sandbox.hardware import GIB
from fleet.sandbox.noise import scatter
from fleet.sandbox.readings import DRIVER, GB, Machine

JSON = dict[str, Any]

NAME = "accept"
TAKES_SECONDS = 20.0
BUSY = "its GPUs work: nothing was tested"
BUSY_PERCENT = 5
# A riser of the wrong kind, and a disk that somebody else was given half of.
SHORT_MACHINES = frozenset({"sb-9e0b80"})
# Generation of PCI Express, bytes/s that reach a card, FLOP/s of a product of matrices (bfloat16; float16 on T4).
REACHED = {
    "B200": (5, 55.2e9, 1.61e15),
    "H200": (5, 54.6e9, 0.71e15),
    "H100 SXM": (5, 54.1e9, 0.69e15),
    "A100 SXM 80 GB": (4, 25.4e9, 0.252e15),
    "A100 SXM 40 GB": (4, 25.1e9, 0.249e15),
    "A800 SXM 80 GB": (4, 25.2e9, 0.250e15),
    "L40S": (4, 25.0e9, 0.214e15),
    "L4": (4, 24.3e9, 0.071e15),
    "A10G": (4, 24.1e9, 0.058e15),
    "T4": (3, 12.2e9, 0.036e15),
    "RTX 4090": (4, 25.3e9, 0.158e15),
    "RTX 3090": (4, 24.9e9, 0.069e15),
}


@dataclass
class Testing:
    """One agent's tests: taken up from a heartbeat's answer, told when their time has passed. Ids that it knows it does not take again."""

    client: IngestClient
    known: set[int] = field(default_factory=set)
    due: dict[int, float] = field(default_factory=dict)

    async def take(self, asked: Any, machine: Machine, token: str, *, now: float) -> None:
        for one in asked if isinstance(asked, list) else []:
            if one["id"] not in self.known:
                self.known.add(one["id"])
                await self._begin(one, machine, token, now)

    async def _begin(self, one: JSON, machine: Machine, token: str, now: float) -> None:
        if one["name"] != NAME:
            await self._tell(token, one["id"], "failed", detail=f"this agent has no action {one['name']!r}")
        elif is_busy(machine, now) and not one["options"].get("when_busy"):
            await self._tell(token, one["id"], "failed", detail=BUSY)
        else:
            self.due[one["id"]] = now + TAKES_SECONDS
            await self._tell(token, one["id"], "running")

    async def finish(self, machine: Machine, token: str, *, now: float) -> None:
        for action_id in [action_id for action_id, at in self.due.items() if at <= now]:
            await self._tell(token, action_id, "done", result=result_of(machine))
            del self.due[action_id]

    async def _tell(self, token: str, action_id: int, state: str, **more: Any) -> None:
        try:
            await self.client.actions(token, {"v": 1, "id": action_id, "state": state, **more})
        except RefusedError:
            # Given up there, or of a database that is gone: the real agent drops it as well.
            self.due.pop(action_id, None)


def is_busy(machine: Machine, at: float) -> bool:
    return any(gpu.get("utilization_percent", 0) >= BUSY_PERCENT for gpu in machine.sample(at)["gpus"])


def result_of(machine: Machine) -> JSON:
    offer, share = OFFERS[machine.offer], 0.5 if machine.id in SHORT_MACHINES else 1.0
    own = 0.97 + 0.06 * scatter(seed_of(machine.id), 17)
    return {
        "gpu": _gpus(machine, share),
        "cpu": {
            "count": offer.vcpus,
            "single_rate": round(612_000 * own),
            "all_rate": round(612_000 * own * offer.vcpus * 0.61),
            "effective_cores": round(offer.vcpus * 0.61, 2),
            "load_before": 0.12,
        },
        "memory": {"total_bytes": int(offer.ram_gib * GIB * 0.985)},
        "disk": {
            "place": "/workspace",
            "size_bytes": int(machine.disk_gb * GB * 0.98),
            "file_bytes": GIB,
            "by": "fio",
            "direct": True,
            "read_bytes_per_second": round(3.1e9 * own * share),
            "write_bytes_per_second": round(1.9e9 * own * share),
            "read_iops": round(412_000 * own * share),
            "write_iops": round(186_000 * own * share),
        },
        "network": {
            "peer": "dashboard",
            "download_bytes_per_second": round(2.9e8 * own),
            "downloaded_bytes": 64 << 20,
            "upload_bytes_per_second": round(1.7e8 * own),
            "uploaded_bytes": 32 << 20,
        },
        "seconds": TAKES_SECONDS,
    }


def _gpus(machine: Machine, share: float) -> JSON:
    generation, copied, multiplied = REACHED[machine.model.name]
    link = {"pcie_generation": generation, "pcie_generation_max": generation, "pcie_width_max": round(16 * share)}
    rows = [
        {
            **row,
            **link,
            "pcie_width": round(16 * share),
            "host_to_device_bytes_per_second": round(copied * share),
            "matrix_flops_per_second": round(multiplied * (0.98 + 0.04 * scatter(seed_of(machine.id, index), 18))),
            "matrix_type": "float16" if machine.model.name == "T4" else "bfloat16",
        }
        for index, row in enumerate(machine.inventory())
    ]
    return {"driver": DRIVER, "count": len(rows), "expected": len(rows), "under_load": True, "gpus": rows}
