"""What a page says of one machine, in the types that agents send: pure."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fleet.telemetry.sanitise import scrub
from fleet.telemetry.scrape.history import History
from fleet.telemetry.wire import MAX_GPUS, Event, GpuWire, HostWire, InventoryRow

BARE_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class UnusableError(ValueError):
    """The page cannot be a machine's readings. `code`: a key of scrape.words.FAILURES."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(code)
        self.code, self.detail = code, detail


@dataclass(slots=True)
class Scraped:
    """One scrape. `gpus` and `inventory` are None where the page is of no GPU exporter, `host` where of no host exporter.

    problem: what a part of the page could not be read for.
    """

    gpus: list[GpuWire] | None = None
    inventory: list[InventoryRow] | None = None
    host: HostWire | None = None
    events: list[Event] = field(default_factory=list)
    problem: UnusableError | None = None


@dataclass(slots=True)
class Draft:
    """GPUs in the making, by UUID. `facts`: fields of an InventoryRow."""

    values: dict[str, dict[str, Any]] = field(default_factory=dict)
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def put(self, uuid: str, name: str, value: Any) -> None:
        """The first word counts: an exporter that repeats a card's figure for each of its parts says it once."""
        self.values.setdefault(uuid, {}).setdefault(name, value)

    def wire(self, dropped: Counter[str]) -> list[GpuWire]:
        return [to_wire(GpuWire, {"uuid": uuid, **values}, dropped) for uuid, values in self.values.items()]

    def inventory(self, dropped: Counter[str]) -> list[InventoryRow]:
        totals = {
            uuid: {"memory_total_bytes": values.get("memory_total_bytes")} for uuid, values in self.values.items()
        }
        return [
            to_wire(InventoryRow, {"uuid": uuid, **totals.get(uuid, {}), **facts}, dropped)
            for uuid, facts in self.facts.items()
        ]


def to_wire(kind: type[Any], data: dict[str, Any], dropped: Counter[str]) -> Any:
    """Values outside their physical range are dropped and counted. Raises UnusableError for texts that are absurd."""
    scrub(data, kind, dropped)
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise UnusableError("bad_labels", str(error)[:100]) from None


def finish_gpus(draft: Draft, scraped: Scraped, dropped: Counter[str]) -> None:
    """Raises UnusableError for a page without a GPU: that is a failed collection, not an idle machine."""
    if not draft.facts:
        raise UnusableError("no_gpus")
    if len(draft.facts) > MAX_GPUS:
        raise UnusableError("too_many_gpus", str(len(draft.facts)))
    scraped.gpus, scraped.inventory = draft.wire(dropped), draft.inventory(dropped)


def canonical_uuid(text: str) -> str:
    """As NVML writes it: exporters cut the prefix off or change the case."""
    lower = text.strip().lower()
    bare = lower.removeprefix("gpu-")
    return f"GPU-{bare}" if BARE_UUID.fullmatch(bare) else text.strip()


def last_xid(history: History, uuid: str, code: float) -> Event | None:
    """DCGM's gauge holds the last XID for ever: only its change to another number is something that has happened."""
    before = history.before(f"xid {uuid}")
    history.keep(f"xid {uuid}", [code])
    if code <= 0 or not history.has_past or (before is not None and before[0] == code):
        return None
    return Event(at=history.at, kind="xid", gpu=uuid, code=int(code))


def counted_xid(history: History, uuid: str, code: int, count: float) -> Event | None:
    """A counter of one XID of one GPU; it is not there before the first one, and starts anew with its exporter."""
    key = f"xids {uuid} {code}"
    before = history.before(key)
    history.keep(key, [count])
    known = before[0] if before is not None else 0.0
    if not history.has_past or count in (known, 0):
        return None
    return Event(at=history.at, kind="xid", gpu=uuid, code=code)
