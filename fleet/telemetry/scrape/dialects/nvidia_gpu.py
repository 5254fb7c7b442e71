"""nvidia_gpu_exporter: base units, label `uuid`, facts in one series to join (its docs/METRICS.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fleet.telemetry.scrape.history import History
from fleet.telemetry.scrape.page import Labels, Page
from fleet.telemetry.scrape.readings import (
    Draft,
    Scraped,
    UnusableError,
    canonical_uuid,
    counted_xid,
    finish_gpus,
)
from fleet.telemetry.wire import Event

PREFIX = "nvidia_smi_"
# (field of a GPU reading, factor)
VALUES = {
    "utilization_gpu_ratio": ("utilization_percent", 100.0),
    "utilization_memory_ratio": ("memory_utilization_percent", 100.0),
    "utilization_encoder_ratio": ("encoder_percent", 100.0),
    "utilization_decoder_ratio": ("decoder_percent", 100.0),
    "memory_used_bytes": ("memory_used_bytes", 1.0),
    "memory_reserved_bytes": ("memory_reserved_bytes", 1.0),
    "memory_total_bytes": ("memory_total_bytes", 1.0),
    "power_draw_watts": ("power_watts", 1.0),
    "enforced_power_limit_watts": ("power_limit_watts", 1.0),
    "temperature_gpu": ("temperature_celsius", 1.0),
    "temperature_memory": ("memory_temperature_celsius", 1.0),
    "clocks_current_sm_clock_hz": ("sm_clock_mhz", 1e-6),
    "clocks_current_memory_clock_hz": ("memory_clock_mhz", 1e-6),
    "clocks_event_reasons_active": ("throttle_reasons", 1.0),
    "clocks_throttle_reasons_active": ("throttle_reasons", 1.0),
    "pcie_throughput_rx_bytes_per_second": ("pcie_rx_bytes_per_second", 1.0),
    "pcie_throughput_tx_bytes_per_second": ("pcie_tx_bytes_per_second", 1.0),
    "compute_apps": ("process_count", 1.0),
    "energy_joules_total": ("energy_joules", 1.0),
    "fan_speed_ratio": ("fan_percent", 100.0),
    "ecc_errors_corrected_volatile_total": ("ecc_corrected", 1.0),
    "ecc_errors_uncorrected_volatile_total": ("ecc_uncorrected", 1.0),
    "remapped_rows_correctable": ("remapped_rows_corrected", 1.0),
    "remapped_rows_uncorrectable": ("remapped_rows_uncorrected", 1.0),
}
FLAGS = {"remapped_rows_pending": "remapped_rows_pending", "remapped_rows_failure": "remapped_rows_failed"}
INFO, SUCCESS, XIDS = f"{PREFIX}gpu_info", f"{PREFIX}last_collect_success", f"{PREFIX}xid_errors_total"

NAMES = frozenset({f"{PREFIX}{name}" for name in (*VALUES, *FLAGS)} | {INFO, SUCCESS, XIDS})
MARKS = NAMES


def read(page: Page, history: History, scraped: Scraped, dropped: Counter[str]) -> None:
    """A collection that the exporter itself calls failed is none: what it still shows is old."""
    if page.value(SUCCESS) == 0:
        raise UnusableError("collection_failed")
    draft = Draft()
    for labels, _ in page.points(INFO):
        if uuid := _uuid(labels):
            draft.facts[uuid] = _facts(labels)
    for name, (field, factor) in VALUES.items():
        _take(page, draft, name, field, factor)
    for name, field in FLAGS.items():
        for labels, value in page.points(f"{PREFIX}{name}"):
            draft.put(_uuid(labels), field, value > 0)
    # An exporter without the joined series still names its GPUs.
    for uuid in draft.values:
        draft.facts.setdefault(uuid, {})
    scraped.events += _xids(page, history)
    finish_gpus(draft, scraped, dropped)


def _take(page: Page, draft: Draft, name: str, field: str, factor: float) -> None:
    for labels, value in page.points(f"{PREFIX}{name}"):
        if uuid := _uuid(labels):
            draft.put(uuid, field, round(value * factor, 9))


def _uuid(labels: Labels) -> str:
    return canonical_uuid(labels.get("uuid", ""))


def _facts(labels: Labels) -> dict[str, object]:
    index = labels.get("index", "")
    return {
        "index": int(index) if index.isdecimal() and len(index) < 5 else 0,
        "name": labels.get("name", ""),
        "pci_bus_id": labels.get("pci_bus_id", ""),
    }


def _xids(page: Page, history: History) -> Iterator[Event]:
    for labels, count in page.points(XIDS):
        code, uuid = labels.get("xid", ""), _uuid(labels)
        if code.isdecimal() and len(code) < 9 and uuid:
            event = counted_xid(history, uuid, int(code), count)
            if event:
                yield event
