"""Is a machine what it was rented as? Promised against measured, with room for what is usual. Pure: no Django, no clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fleet.providers.drift import ENOUGH_MEMORY
from fleet.providers.gpus import NAMES, canonical
from fleet.quality.acceptance.figures import Check, Judgement, Promised, Reference, Result, Source
from fleet.quality.acceptance.measured import Measured
from fleet.quality.acceptance.reference import link_bytes_per_second

PASS, SHORT, NOT_AS_RENTED, UNCLEAR = "pass", "short", "not_as_rented", "unclear"

MIB, GB = 1 << 20, 10**9
# Memory is sold in GB or GiB (7 % apart), and kernels and firmware keep some.
ENOUGH_RAM = 0.88
# Partitions, file systems' own data and GB against GiB.
ENOUGH_DISK = 0.85
# Pinned copies reach 75 to 90 % of a link on bare metal, less through virtual machines.
ENOUGH_LINK = 0.6
# Large products of matrices reach 60 to 95 % of the dense rate; at its power limit a board reaches less.
ENOUGH_MATRIX = 0.45
# Cards of one machine are alike; one that is a seventh slower is throttled, faulty or another board.
ENOUGH_OF_EQUALS = 0.85
# A vCPU is a hardware thread: two on one core do 1.2 to 1.3 times its work.
ENOUGH_OF_CORES = 0.4
# With more than this share of the processors taken before the test began, it says nothing of them.
QUIET_LOAD = 0.25
# Of the median of machines of the kind.
ENOUGH_OF_PEERS = 0.6
UNITS = {
    "gpu_memory": "bytes",
    "pcie_width": "lanes",
    "pcie_generation": "generation",
    "host_to_device": "bytes_per_second",
    "matrix": "flops",
    "slowest_gpu": "flops",
    "ram": "bytes",
    "disk": "bytes",
    "disk_read": "bytes_per_second",
    "disk_write": "bytes_per_second",
    "disk_read_iops": "iops",
    "disk_write_iops": "iops",
    "cpu_single": "rounds",
    "download": "bytes_per_second",
    "upload": "bytes_per_second",
}
COMPARED = ("disk_read", "disk_write", "disk_read_iops", "disk_write_iops", "cpu_single")


def judge(promised: Promised, measured: Measured, reference: Reference) -> Judgement:
    checks = (*_gpus(promised, measured, reference), *_host(promised, measured), *_rates(measured, reference))
    return Judgement(_verdict(promised, checks), checks)


def _verdict(promised: Promised, checks: tuple[Check, ...]) -> str:
    results = {check.name: check.result for check in checks}
    if Result.WRONG in results.values():
        return NOT_AS_RENTED
    if Result.SHORT in results.values():
        return SHORT
    # What a machine is rented for must have been seen.
    needed = ("gpu_model", "gpu_count") if promised.gpu_count or promised.gpu_model else ("vcpus", "ram")
    return PASS if all(results.get(name) is Result.OK for name in needed) else UNCLEAR


def _gpus(promised: Promised, measured: Measured, reference: Reference) -> Iterator[Check]:
    yield _model(promised, measured)
    yield _held("gpu_count", promised.gpu_count, measured.gpu_count, 1.0, Source.PROVIDER, otherwise=Result.WRONG)
    memory = promised.gpu_memory_mib * MIB if promised.gpu_memory_mib else None
    found = measured.least("memory_total_bytes")
    yield _held("gpu_memory", memory, found, ENOUGH_MEMORY, Source.PROVIDER, otherwise=Result.WRONG)
    yield _held("pcie_width", reference.pcie_width, measured.least("pcie_width"), 1.0, Source.CARD)
    # An idle link slows down: without load only what both ends could do is known.
    name = "pcie_generation" if measured.under_load else "pcie_generation_max"
    yield _held("pcie_generation", reference.pcie_generation, measured.least(name), 1.0, Source.CARD)
    link = link_bytes_per_second(reference.pcie_generation, reference.pcie_width)
    copied = measured.least("host_to_device_bytes_per_second")
    yield _held("host_to_device", link, copied, ENOUGH_LINK, Source.LINK)
    dense = reference.matrix_flops_per_second.get(measured.matrix_type)
    multiplied = measured.least("matrix_flops_per_second")
    yield _held("matrix", dense, multiplied, ENOUGH_MATRIX, Source.CARD)
    middle = measured.middle("matrix_flops_per_second")
    if middle is not None:
        yield _held("slowest_gpu", middle, multiplied, ENOUGH_OF_EQUALS, Source.EQUALS)


def _model(promised: Promised, measured: Measured) -> Check:
    """Only names that both sides give without doubt are held against each other."""
    wanted = canonical(promised.gpu_model, memory_mib=promised.gpu_memory_mib)
    names = {
        canonical(card.name, memory_mib=card.memory_bytes // MIB if card.memory_bytes else None)
        for card in measured.cards
        if card.name
    }
    found = ", ".join(sorted(names)) or None
    if wanted not in NAMES or not names or not names <= set(NAMES):
        result = Result.UNKNOWN
    else:
        result = Result.OK if names == {wanted} else Result.WRONG
    return Check(
        name="gpu_model", promised=wanted or None, measured=found, unit="model", result=result, source=Source.PROVIDER
    )


def _host(promised: Promised, measured: Measured) -> Iterator[Check]:
    cores = measured.number("cpu", "limit_cores") or measured.number("cpu", "count")
    yield _held("vcpus", promised.vcpus, cores, 0.95, Source.PROVIDER)
    yield _delivered(promised, measured)
    ram = promised.ram_mib * MIB if promised.ram_mib else None
    yield _held("ram", ram, measured.number("memory", "total_bytes"), ENOUGH_RAM, Source.PROVIDER)
    yield _disk(promised, measured)


def _delivered(promised: Promised, measured: Measured) -> Check:
    """How many cores all vCPUs together are worth: fewer where others use the same ones. Unknown where it was busy by itself."""
    check = _held(
        "cpu_delivered", promised.vcpus, measured.number("cpu", "effective_cores"), ENOUGH_OF_CORES, Source.PROVIDER
    )
    load, count = measured.number("cpu", "load_before") or 0.0, measured.number("cpu", "count")
    if check.result is Result.SHORT and (count is None or load > QUIET_LOAD * count):
        return replace(check, result=Result.UNKNOWN)
    return check


def _disk(promised: Promised, measured: Measured) -> Check:
    """The agent sees the disks that it may write to, and other file systems it reports on: a smaller one proves nothing."""
    size = measured.number("disk", "size_bytes")
    largest = measured.number("disk", "largest_bytes")
    found = max((one for one in (size, largest) if one is not None), default=None)
    wanted = promised.disk_gb * GB if promised.disk_gb else None
    return _held("disk", wanted, found, ENOUGH_DISK, Source.PROVIDER)


RATES: dict[str, tuple[str, str]] = {
    "disk_read": ("disk", "read_bytes_per_second"),
    "disk_write": ("disk", "write_bytes_per_second"),
    "disk_read_iops": ("disk", "read_iops"),
    "disk_write_iops": ("disk", "write_iops"),
    "cpu_single": ("cpu", "single_rate"),
    "download": ("network", "download_bytes_per_second"),
    "upload": ("network", "upload_bytes_per_second"),
}


def rate_of(measured: Measured, name: str) -> float | None:
    return measured.number(*RATES[name])


def _rates(measured: Measured, reference: Reference) -> Iterator[Check]:
    """Nobody promises these; what machines of the kind reach is the only measure. The way to here may be slow at our end."""
    for name in RATES:
        found = rate_of(measured, name)
        peers = reference.peers.get(name) if name in COMPARED else None
        if found is not None:
            yield _held(name, peers, found, ENOUGH_OF_PEERS, Source.PEERS)


def _held(
    name: str,
    wanted: float | None,
    found: float | None,
    enough: float,
    source: Source,
    *,
    otherwise: Result = Result.SHORT,
) -> Check:
    result = Result.UNKNOWN
    if wanted and found is not None:
        result = Result.OK if found >= enough * wanted else otherwise
    return Check(
        name=name,
        promised=wanted or None,
        measured=found,
        unit=UNITS.get(name, ""),
        result=result,
        source=source if wanted else Source.NONE,
    )
