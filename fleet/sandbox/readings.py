"""From what a GPU and its host do to what an agent would read there: the wire's own field names, ranges and absences (docs/agent-protocol.md)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fleet.sandbox.cast import IMAGES, OFFERS, gpu_patterns, member_of, seed_of
from fleet.sandbox.hardware import GIB, MIB, GpuModel
from fleet.sandbox.noise import jitter
from fleet.sandbox.patterns import DAY, GpuLoad, HostLoad, Pattern, combined, free
from fleet.sandbox.rentals import Rental

JSON = dict[str, Any]
DRIVER, CUDA = "570.86.15", "12.8"
PCIE_BYTES_PER_SECOND = 26e9
GB = 10**9


@dataclass(frozen=True)
class Machine:
    """A running machine of the sandbox as seen from inside. Times are seconds since the epoch; `booted_at`: its present start."""

    id: str
    name: str
    offer: str
    image: str
    disk_gb: int
    born_at: float
    booted_at: float
    patterns: tuple[Pattern, ...]

    @classmethod
    def of(cls, rental: Rental, *, born_at: float) -> Machine:
        return cls(
            id=rental.id,
            name=rental.name,
            offer=rental.offer,
            image=rental.image,
            disk_gb=rental.disk_gb,
            born_at=born_at,
            booted_at=rental.status_since if rental.started_at is None else rental.started_at,
            patterns=patterns_of(rental.id, OFFERS[rental.offer].gpu_count),
        )

    @cached_property
    def model(self) -> GpuModel:
        return OFFERS[self.offer].gpu

    @cached_property
    def uuids(self) -> tuple[str, ...]:
        """The same for ever for one machine: GPU identity outlives a restart."""
        return tuple(gpu_uuid(f"{self.id}/{index}") for index in range(len(self.patterns)))

    @property
    def boot_id(self) -> str:
        return hashlib.sha256(f"{self.id} {self.booted_at}".encode()).hexdigest()[:32]

    def moment(self, at: float) -> float:
        """`at` on the clock of patterns. A restart cures what ails a machine for a day: it is then as on the day before the birth."""
        return at - self.born_at if self.booted_at <= self.born_at else at - self.booted_at - DAY

    def sample(self, at: float) -> JSON:
        """One sample of host and GPUs as of `at`."""
        t = self.moment(at)
        loads = [pattern(t, seed_of(self.id, index)) for index, pattern in enumerate(self.patterns)]
        # One host share per kind of work, not per GPU: a training job of eight GPUs is one job.
        hosts = {pattern: load.host for pattern, load in zip(self.patterns, loads, strict=True)}
        gpus = [
            gpu_reading(uuid, self.model, load.gpu, t, seed_of(self.id, index), names_processes=self.has_own_host)
            for index, (uuid, load) in enumerate(zip(self.uuids, loads, strict=True))
        ]
        return {"at": round(at, 3), "host": self._host(combined(hosts.values()), at), "gpus": gpus}

    @property
    def has_own_host(self) -> bool:
        """Elsewhere the agent runs in a container, where process ids of the driver mean nothing."""
        return OFFERS[self.offer].tenancy == "dedicated_host"

    def _host(self, load: HostLoad, at: float) -> JSON:
        offer, wobble = OFFERS[self.offer], jitter(at, seed_of(self.id) + 31)
        memory, disk = offer.ram_gib * GIB, self.disk_gb * GB
        scope = "cgroup" if offer.tenancy == "dedicated_gpu" else "host"
        reading: JSON = {
            "cpu_percent": _percent(load.cpu * (1 + 0.08 * wobble)),
            "cpu_iowait_percent": _percent(load.iowait),
            "cpu_limit_cores": offer.vcpus,
            "load1": round(offer.vcpus * (load.cpu + load.iowait), 2),
            "memory_used_bytes": int(memory * load.memory),
            "memory_total_bytes": memory,
            "pressure_cpu_percent": _percent(max(load.cpu_pressure, load.cpu - 0.8)),
            "pressure_memory_percent": 0,
            "pressure_io_percent": _percent(load.io_pressure),
            "disk_scope": scope,
            "network_rx_bytes_per_second": round(load.received * (1 + 0.12 * wobble)),
            "network_tx_bytes_per_second": round(load.sent * (1 + 0.2 * wobble)),
            "filesystem_used_bytes": int(disk * (0.41 + 0.1 * (seed_of(self.id) % 5))),
            "filesystem_total_bytes": disk,
            "ssh_sessions": load.ssh_sessions,
            **_disk(load),
        }
        if load.kernel_idle_seconds is not None:
            reading |= {
                "jupyter_kernels": load.kernels,
                "jupyter_busy_kernels": load.busy_kernels,
                "jupyter_last_activity_at": round(at - load.kernel_idle_seconds),
            }
        return reading

    def inventory(self) -> list[JSON]:
        return [
            {
                "uuid": uuid,
                "index": index,
                "name": self.model.nvml_name,
                "memory_total_bytes": self.model.memory_bytes,
                "pci_bus_id": f"00000000:{0x19 + 0x11 * index:02X}:00.0",
            }
            for index, uuid in enumerate(self.uuids)
        ]

    def environment(self) -> JSON:
        offer = OFFERS[self.offer]
        return {
            "hostname": self.name,
            "os": "Ubuntu 22.04.5 LTS",
            "kernel": "5.15.0-131-generic",
            "architecture": "x86_64",
            "container": "none" if self.has_own_host else "docker",
            "cpu_model": "AMD EPYC 9354 32-Core Processor",
            "cpu_count": offer.vcpus,
            "memory_total_bytes": offer.ram_gib * GIB,
            "boot_id": self.boot_id,
            "boot_at": self.booted_at,
            "driver": DRIVER,
            "cuda_driver": CUDA,
            "nvml": f"12.{DRIVER}",
            "python": "3.11.11",
            "provider_ids": self.provider_ids(),
            "agent_user": "rackrent-agent",
            **SOFTWARE[IMAGES[self.image].split()[0]],
        }

    def provider_ids(self) -> JSON:
        return {"sandbox_instance_id": self.id}


SOFTWARE: dict[str, JSON] = {
    "pytorch-train": {"cudnn": "9.10.2", "nccl": "2.27.3", "frameworks": {"torch": "2.8.0+cu128", "transformers": "4.56.1"}},
    "vllm-serve": {"cudnn": "9.10.2", "nccl": "2.27.3", "frameworks": {"torch": "2.8.0+cu128", "vllm": "0.11.0"}},
    "notebook": {"cudnn": "9.8.0", "frameworks": {"torch": "2.7.1+cu126"}},
    "ubuntu-22.04-cuda-12.8": {},
}  # fmt: skip


def patterns_of(machine_id: str, gpu_count: int) -> tuple[Pattern, ...]:
    """Those of the cast; a machine that somebody created does nothing yet."""
    member = member_of(machine_id)
    return tuple(gpu_patterns(member)) if member else (free,) * gpu_count


def gpu_uuid(name: str) -> str:
    """NVML's form of a UUID, the same for the same name."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    return f"GPU-{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


def gpu_reading(
    uuid: str, model: GpuModel, load: GpuLoad, t: float, seed: int, *, names_processes: bool = False
) -> JSON:
    """One GPU in one sample. What its model cannot count is absent, and `unavailable` says why; of a lost GPU nothing is read."""
    if load.lost:
        return {"uuid": uuid, "state": "lost"}
    watts = model.idle_watts + (model.limit_watts - model.idle_watts) * load.power + 1.5 * jitter(t, seed + 21)
    used = int((model.memory_bytes - model.reserved_mib * MIB) * load.memory)
    reading: JSON = {
        "uuid": uuid,
        "state": "ok",
        "utilization_percent": round(100 * load.utilization),
        "memory_utilization_percent": round(100 * (load.dram or 0.3 * load.utilization)),
        "memory_used_bytes": used,
        "memory_reserved_bytes": model.reserved_mib * MIB,
        "memory_total_bytes": model.memory_bytes,
        "memory_includes_reserved": False,
        "power_watts": round(min(watts, model.limit_watts), 1),
        "power_limit_watts": model.limit_watts,
        "sm_clock_mhz": round(model.boost_mhz * min(load.clock, 1.0) / 15) * 15,
        "memory_clock_mhz": model.memory_mhz,
        "throttle_reasons": load.throttle,
        "pcie_rx_bytes_per_second": round(PCIE_BYTES_PER_SECOND * load.pcie * 0.8),
        "pcie_tx_bytes_per_second": round(PCIE_BYTES_PER_SECOND * load.pcie * 0.3),
        "process_count": load.processes,
        "process_memory_bytes": used if load.processes else 0,
        "processes": [_process(seed, used, named=names_processes)] * load.processes,
    }
    return reading | _temperatures(model, load, t, seed) | _where_counted(model, load)


def _process(seed: int, memory_bytes: int, *, named: bool) -> JSON:
    process = {"pid": 4100 + seed % 256, "memory_bytes": memory_bytes, "resolved": named}
    return process | {"name": "python"} if named else process


def _temperatures(model: GpuModel, load: GpuLoad, t: float, seed: int) -> JSON:
    core = load.temperature_celsius
    if core is None:
        core = 29 + seed % 5 + 38 * load.power + 0.7 * jitter(t, seed + 22)
    reading: JSON = {"temperature_celsius": round(core)}
    if model.has_memory_sensor:
        reading["memory_temperature_celsius"] = round(core + 9)
    if model.has_fan:
        reading["fan_percent"] = round(min(100.0, max(0.0, (core - 40) * 2.1)))
    return reading


def _where_counted(model: GpuModel, load: GpuLoad) -> JSON:
    reading: JSON = {}
    if model.counts_activity:
        reading |= {
            "sm_activity": round(load.sm, 4),
            "sm_occupancy": round(load.sm * 0.42, 4),
            "tensor_activity": round(load.tensor, 4),
            "dram_activity": round(load.dram, 4),
        }
    else:
        reading["unavailable"] = {"sm_activity": "GPM needs Hopper or newer"}
    if model.nvlink_bytes_per_second:
        rate = round(model.nvlink_bytes_per_second * load.nvlink)
        reading |= {"nvlink_rx_bytes_per_second": rate, "nvlink_tx_bytes_per_second": rate}
    if model.has_ecc:
        reading |= {"ecc_corrected": 0, "ecc_uncorrected": 0}
    return reading


def _disk(load: HostLoad) -> JSON:
    """Large reads and writes of half a MiB each, as data loaders and checkpoints do them."""
    read, write = max(0.0, load.read), max(0.0, load.write)
    return {
        "disk_read_bytes_per_second": round(read),
        "disk_write_bytes_per_second": round(write),
        "disk_read_iops": round(read / (512 << 10), 1),
        "disk_write_iops": round(write / (512 << 10), 1),
        "disk_read_latency_seconds": load.read_latency_seconds,
        "disk_write_latency_seconds": round(load.read_latency_seconds * 1.4, 6),
        "disk_busy_percent": _percent(min(1.0, (read + write) / 2.1e9)),
    }


def _percent(share: float) -> float:
    return round(100 * min(1.0, max(0.0, share)), 2)
