"""Small exporter pages of our own, and readers for them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fleet.telemetry.scrape.dialects import WANTED, read_page
from fleet.telemetry.scrape.history import History
from fleet.telemetry.scrape.page import parse_page

AT = 1_795_999_990.0
CARD = "GPU-0a1b2c3d-0000-1111-2222-333344445555"


class Target:
    """Reads one page after another, as a worker does, and remembers counters in between. `read` gives a Scraped."""

    def __init__(self, kind: str = "auto") -> None:
        self.kind = kind
        self.memory: dict[str, Any] = {}
        self.dropped: Counter[str] = Counter()

    def read(self, text: str, *, at: float = AT, longest_seconds: float = 300.0) -> Any:
        history = History(self.memory, at=at, longest_seconds=longest_seconds)
        page = parse_page(text, WANTED[self.kind])
        scraped = read_page(page, kind=self.kind, history=history, dropped=self.dropped)
        self.memory = history.to_json()
        return scraped


def dcgm(*, host_label: str = "Hostname", uuid: str = CARD, **values: object) -> str:
    """A page of dcgm-exporter for one card: name without DCGM_FI_ = value."""
    labels = f'gpu="0",UUID="{uuid}",pci_bus_id="00000000:18:00.0",device="nvidia0",modelName="NVIDIA H100 80GB HBM3",{host_label}="node-1"'
    return "".join(
        f"# TYPE DCGM_FI_{name} gauge\nDCGM_FI_{name}{{{labels}}} {value}\n" for name, value in values.items()
    )


def xid(code: int, *, label: str = "Hostname") -> str:
    return dcgm(host_label=label, DEV_GPU_UTIL=0, DEV_XID_ERRORS=code)
