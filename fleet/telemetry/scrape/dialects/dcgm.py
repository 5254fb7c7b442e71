"""dcgm-exporter 3.x and 4.x, and our own agent's /metrics (dcgm-exporter etc/default-counters.csv; labels: internal/pkg/rendermetrics)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from fleet.telemetry.scrape.history import History
from fleet.telemetry.scrape.page import Labels, Page
from fleet.telemetry.scrape.readings import Draft, Scraped, canonical_uuid, counted_xid, finish_gpus, last_xid
from fleet.telemetry.wire import Event

MIB = 1 << 20
# Of the whole card: for its MIG instances they are the card's figure repeated, and a sum over them would count it again.
CARD = {
    "DCGM_FI_DEV_SM_CLOCK": ("sm_clock_mhz", 1.0),
    "DCGM_FI_DEV_MEM_CLOCK": ("memory_clock_mhz", 1.0),
    "DCGM_FI_DEV_GPU_TEMP": ("temperature_celsius", 1.0),
    "DCGM_FI_DEV_MEMORY_TEMP": ("memory_temperature_celsius", 1.0),
    "DCGM_FI_DEV_POWER_USAGE": ("power_watts", 1.0),
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": ("power_limit_watts", 1.0),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": ("throttle_reasons", 1.0),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": ("throttle_reasons", 1.0),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": ("energy_joules", 1e-3),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": ("pcie_replays", 1.0),
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL": ("ecc_corrected", 1.0),
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": ("ecc_uncorrected", 1.0),
    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS": ("remapped_rows_corrected", 1.0),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": ("remapped_rows_uncorrected", 1.0),
}
# Not supported on a card that is cut into MIG instances, where it reads 0 at best: absent then, not zero.
WHOLE_CARD_ONLY = {
    "DCGM_FI_DEV_GPU_UTIL": ("utilization_percent", 1.0),
    "DCGM_FI_DEV_MEM_COPY_UTIL": ("memory_utilization_percent", 1.0),
    "DCGM_FI_DEV_ENC_UTIL": ("encoder_percent", 1.0),
    "DCGM_FI_DEV_DEC_UTIL": ("decoder_percent", 1.0),
}
# Of a card or of one MIG instance.
PART = {
    "DCGM_FI_DEV_FB_USED": ("memory_used_bytes", MIB),
    "DCGM_FI_DEV_FB_RESERVED": ("memory_reserved_bytes", MIB),
    "DCGM_FI_DEV_FB_TOTAL": ("memory_total_bytes", MIB),
    "DCGM_FI_PROF_SM_ACTIVE": ("sm_activity", 1.0),
    "DCGM_FI_PROF_SM_OCCUPANCY": ("sm_occupancy", 1.0),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": ("tensor_activity", 1.0),
    "DCGM_FI_PROF_DRAM_ACTIVE": ("dram_activity", 1.0),
}
# NVIDIA's own list says gauge, bytes per second; others collect the same names as counters, which they then declare.
PCIE = {
    "DCGM_FI_PROF_PCIE_TX_BYTES": "pcie_tx_bytes_per_second",
    "DCGM_FI_PROF_PCIE_RX_BYTES": "pcie_rx_bytes_per_second",
}
FREE, REMAP_FAILURE, LAST_XID = "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_ROW_REMAP_FAILURE", "DCGM_FI_DEV_XID_ERRORS"
AGENT_XIDS, AGENT_SUCCESS = "rackrent_agent_xid_errors_total", "rackrent_agent_last_collect_success"
AGENT_GPUS = "rackrent_agent_gpus"

_GPU_NAMES = frozenset({*CARD, *WHOLE_CARD_ONLY, *PART, *PCIE, FREE, REMAP_FAILURE, LAST_XID})
NAMES = _GPU_NAMES | {AGENT_XIDS, AGENT_SUCCESS, AGENT_GPUS}
MARKS = _GPU_NAMES | {AGENT_SUCCESS}


def read(page: Page, history: History, scraped: Scraped, dropped: Counter[str]) -> None:
    if page.value(AGENT_SUCCESS) == 1 and page.value(AGENT_GPUS) == 0:
        return  # Our agent on a machine without NVIDIA's driver: only the host is there to read.
    draft, cut_cards = Draft(), _cut_cards(page)
    _take_facts(page, draft, cut_cards)
    _take_values(page, draft, cut_cards)
    _take_pcie(page, draft, history)
    _add_totals(page, draft)
    scraped.events += _xids(page, history)
    finish_gpus(draft, scraped, dropped)


def _card(labels: Labels) -> str:
    return canonical_uuid(labels.get("UUID") or labels.get("uuid") or labels.get("gpu_uuid") or "")


def _part(labels: Labels) -> str:
    """A MIG instance has no UUID of its own here: it is known by its card and its number on it."""
    card, number = _card(labels), labels.get("GPU_I_ID")
    return f"{card}/{number}" if card and number else card


def _cut_cards(page: Page) -> set[str]:
    every = (labels for name in _GPU_NAMES for labels, _ in page.points(name))
    return {_card(labels) for labels in every if labels.get("GPU_I_ID")}


def _take_facts(page: Page, draft: Draft, cut_cards: set[str]) -> None:
    for name in sorted(_GPU_NAMES):
        for labels, _ in page.points(name):
            card, part = _card(labels), _part(labels)
            if not card:
                continue
            known = {
                "index": _index(labels),
                "name": labels.get("modelName") or labels.get("model_name") or "",
                "pci_bus_id": labels.get("pci_bus_id", ""),
            }
            draft.facts.setdefault(card, known)
            if part != card:
                mig = {"mig_parent": card, "mig_profile": labels.get("GPU_I_PROFILE", "")}
                draft.facts.setdefault(part, {**known, **mig})
    for card in cut_cards:
        draft.values.setdefault(card, {})


def _index(labels: Labels) -> int:
    gpu = labels.get("gpu", "")
    return int(gpu) if gpu.isdecimal() and len(gpu) < 5 else 0


def _take_values(page: Page, draft: Draft, cut_cards: set[str]) -> None:
    for card, field, value in _values(page, CARD, _card):
        draft.put(card, field, value)
    for card, field, value in _values(page, WHOLE_CARD_ONLY, _card):
        if card not in cut_cards:
            draft.put(card, field, value)
    for part, field, value in _values(page, PART, _part):
        draft.put(part, field, value)
    for card, field, value in _values(page, {REMAP_FAILURE: ("remapped_rows_failed", 1.0)}, _card):
        draft.put(card, field, value > 0)


def _values(
    page: Page, table: Mapping[str, tuple[str, float]], owner_of: Callable[[Labels], str]
) -> Iterator[tuple[str, str, float]]:
    for name, (field, factor) in table.items():
        for labels, value in page.points(name):
            if owner := owner_of(labels):
                yield owner, field, value * factor


def _take_pcie(page: Page, draft: Draft, history: History) -> None:
    for name, field in PCIE.items():
        counts = page.kinds.get(name) == "counter"
        for labels, value in page.points(name):
            part = _part(labels)
            if not part:
                continue
            if not counts:
                draft.put(part, field, value)
            elif grown := history.growth(f"{field} {part}", [value]):
                draft.put(part, field, grown.per_second())


def _add_totals(page: Page, draft: Draft) -> None:
    """Used and free alone do not make up the total: the driver's own part is missing in both."""
    free = {_part(labels): value * MIB for labels, value in page.points(FREE)}
    for uuid, values in draft.values.items():
        used, reserved = values.get("memory_used_bytes"), values.get("memory_reserved_bytes")
        if used is not None and reserved is not None and uuid in free:
            values.setdefault("memory_total_bytes", used + reserved + free[uuid])


def _xids(page: Page, history: History) -> list[Event]:
    found = list(_counted(page, history)) if AGENT_XIDS in page else []
    counted = {event.gpu for event in found}
    for labels, value in page.points(LAST_XID):
        card = _card(labels)
        event = last_xid(history, card, value) if card else None
        if event and event.gpu not in counted:
            counted.add(event.gpu)
            found.append(event)
    return found


def _counted(page: Page, history: History) -> Iterator[Event]:
    for labels, count in page.points(AGENT_XIDS):
        code = labels.get("xid", "")
        if code.isdecimal() and len(code) < 9 and (card := _card(labels)):
            event = counted_xid(history, card, int(code), count)
            if event:
                yield event
