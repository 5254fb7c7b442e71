"""node_exporter: counters of the host, made into rates between two scrapes (names: prometheus/node_exporter collector/)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from fleet.telemetry.scrape.history import Growth, History
from fleet.telemetry.scrape.page import Page
from fleet.telemetry.scrape.readings import Scraped, to_wire
from fleet.telemetry.wire import MAX_LIST, HostWire

# Their traffic is counted again on the disks below them, or is no disk at all.
NOT_PHYSICAL = re.compile(r"^(z?ram\d|loop|fd\d|sr\d|dm-|md\d|drbd|bcache|zd\d|nbd\d|nvme\d+c\d+n\d+)")
PARTITION = re.compile(r"^((h|s|v|xv)d[a-z]+\d+|(nvme\d+n\d+|mmcblk\d+)(p|boot)\d+)$")
# Their traffic passes a physical interface as well: bridges, container pairs, tunnels, bonds.
VIRTUAL = re.compile(
    r"^(veth|docker|br-|virbr|cni|flannel|cali|cilium|lxc|tun|tap|wg|tailscale|bond|dummy|ifb|kube|vnet|team)"
)
LOCAL_FILESYSTEMS = frozenset(
    "ext2 ext3 ext4 xfs btrfs zfs f2fs bcachefs overlay reiserfs jfs vfat exfat ntfs3".split()  # noqa: SIM905 - read as words
)
# Hypervisors and time servers move the reported moment of a boot by seconds; another boot moves it by more.
SAME_BOOT_SECONDS = 60.0

BOOT, LOAD, CPU = "node_boot_time_seconds", "node_load1", "node_cpu_seconds_total"
TOTAL, AVAILABLE = "node_memory_MemTotal_bytes", "node_memory_MemAvailable_bytes"
PRESSURE = {
    name: f"node_pressure_{resource}_waiting_seconds_total"
    for name, resource in (
        ("pressure_cpu_percent", "cpu"),
        ("pressure_memory_percent", "memory"),
        ("pressure_io_percent", "io"),
    )
}
DISK = tuple(
    f"node_disk_{name}_total"
    for name in (
        "reads_completed",
        "read_bytes",
        "read_time_seconds",
        "writes_completed",
        "written_bytes",
        "write_time_seconds",
        "io_time_seconds",
    )
)
READS, READ_BYTES, READ_SECONDS, WRITES, WRITTEN_BYTES, WRITE_SECONDS, BUSY_SECONDS = range(7)
RECEIVED, SENT = "node_network_receive_bytes_total", "node_network_transmit_bytes_total"
SIZE, UNUSED = "node_filesystem_size_bytes", "node_filesystem_free_bytes"

NAMES = frozenset({BOOT, LOAD, CPU, TOTAL, AVAILABLE, *PRESSURE.values(), *DISK, RECEIVED, SENT, SIZE, UNUSED})
MARKS = NAMES


def read(page: Page, history: History, scraped: Scraped, dropped: Counter[str]) -> None:
    _notice_boot(page, history)
    values: dict[str, Any] = {"load1": page.value(LOAD), **_memory(page), **_cpu(page, history)}
    for name, counter in PRESSURE.items():
        waited = page.value(counter)
        if waited is not None and (grown := history.growth(name, [waited])):
            values[name] = min(100.0, 100 * grown.per_second())
    values |= _disks(page, history) | _network(page, history) | _filesystems(page)
    scraped.host = to_wire(HostWire, {name: value for name, value in values.items() if value is not None}, dropped)


def _notice_boot(page: Page, history: History) -> None:
    """After a boot a counter may already be past its old value: a rate over it would be invented."""
    booted_at = page.value(BOOT)
    if booted_at is None:
        return
    before = history.before("boot")
    if before is not None and abs(before[0] - booted_at) > SAME_BOOT_SECONDS:
        history.forget_the_past()
    history.keep("boot", [booted_at])


def _memory(page: Page) -> dict[str, Any]:
    total, available = page.value(TOTAL), page.value(AVAILABLE)
    used = total - available if total is not None and available is not None else None
    return {"memory_total_bytes": total, "memory_used_bytes": used}


def _cpu(page: Page, history: History) -> dict[str, Any]:
    modes: dict[str, float] = {}
    for labels, seconds in page.points(CPU):
        mode = labels.get("mode", "")
        modes[mode] = modes.get(mode, 0.0) + seconds
    if "idle" not in modes:
        return {}
    idle, iowait = modes.pop("idle"), modes.pop("iowait", 0.0)
    grown = history.growth("cpu", [idle, iowait, sum(modes.values())])
    total = sum(grown.deltas) if grown else 0.0
    if grown is None or total <= 0:
        return {}
    return {"cpu_percent": 100 * grown.deltas[2] / total, "cpu_iowait_percent": 100 * grown.deltas[1] / total}


def _disks(page: Page, history: History) -> dict[str, Any]:
    columns = [page.by_label(name, "device") for name in DISK]
    whole = [name for name in columns[0] if not NOT_PHYSICAL.match(name) and not PARTITION.match(name)]
    grown = {}
    for device in whole[:MAX_LIST]:
        if all(device in column for column in columns):
            growth = history.growth(f"disk {device}", [column[device] for column in columns])
            if growth:
                grown[device] = growth
    if not grown:
        return {}
    rows = [{"device": device, **_disk_rates(growth)} for device, growth in grown.items()]
    return {"disks": rows, "disk_scope": "host", **_over_disks(list(grown.values()))}


def _disk_rates(growth: Growth) -> dict[str, float]:
    rates = {
        "read_bytes_per_second": growth.per_second(READ_BYTES),
        "write_bytes_per_second": growth.per_second(WRITTEN_BYTES),
        "read_iops": growth.per_second(READS),
        "write_iops": growth.per_second(WRITES),
        "busy_percent": min(100.0, 100 * growth.per_second(BUSY_SECONDS)),
    }
    # Without a request in the interval there is no latency: absent, not zero.
    if growth.deltas[READS] > 0:
        rates["read_latency_seconds"] = growth.deltas[READ_SECONDS] / growth.deltas[READS]
    if growth.deltas[WRITES] > 0:
        rates["write_latency_seconds"] = growth.deltas[WRITE_SECONDS] / growth.deltas[WRITES]
    return rates


def _over_disks(grown: list[Growth]) -> dict[str, float]:
    """Traffic of all disks together, latency over all their requests, and how busy the busiest one is."""
    sums = tuple(sum(growth.deltas[column] for growth in grown) for column in range(len(DISK)))
    together = _disk_rates(Growth(sums, grown[0].seconds))
    busiest = max(min(100.0, 100 * growth.per_second(BUSY_SECONDS)) for growth in grown)
    return {f"disk_{name}": value for name, value in {**together, "busy_percent": busiest}.items()}


def _network(page: Page, history: History) -> dict[str, Any]:
    received, sent = page.by_label(RECEIVED, "device"), page.by_label(SENT, "device")
    names = [name for name in received if name in sent and name != "lo"]
    grown = {name: history.growth(f"net {name}", [received[name], sent[name]]) for name in names[:MAX_LIST]}
    rows = [
        {"name": name, "rx_bytes_per_second": growth.per_second(0), "tx_bytes_per_second": growth.per_second(1)}
        for name, growth in grown.items()
        if growth and not name.startswith("veth")
    ]
    carriers = [growth for name, growth in grown.items() if not VIRTUAL.match(name)]
    values: dict[str, Any] = {"interfaces": rows} if rows else {}
    # A part of the interfaces would look like a quiet machine.
    if carriers and len(names) <= MAX_LIST and all(carriers):
        values["network_rx_bytes_per_second"] = sum(growth.per_second(0) for growth in carriers if growth)
        values["network_tx_bytes_per_second"] = sum(growth.per_second(1) for growth in carriers if growth)
    return values


def _filesystems(page: Page) -> dict[str, Any]:
    """One row for each device, however many times it is mounted."""
    free = {labels.get("mountpoint", ""): value for labels, value in page.points(UNUSED)}
    rows: dict[str, dict[str, Any]] = {}
    root: dict[str, Any] = {}
    for labels, size in page.points(SIZE):
        mount, kind = labels.get("mountpoint", ""), labels.get("fstype")
        # Our own agent lists only local ones and says no type.
        if size <= 0 or mount not in free or (kind is not None and kind not in LOCAL_FILESYSTEMS):
            continue
        used = max(size - free[mount], 0.0)
        if mount == "/":
            root = {"filesystem_used_bytes": used, "filesystem_total_bytes": size}
        rows.setdefault(labels.get("device", mount), {"mount": mount, "used_bytes": used, "total_bytes": size})
    return {"filesystems": list(rows.values())[:MAX_LIST], **root} if rows else root
