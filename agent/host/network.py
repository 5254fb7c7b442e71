"""Network traffic per interface, and of the machine without counting a byte twice."""

from __future__ import annotations

import os
import re

from agent.host import files
from agent.rates import CounterHistory

_MOST_INTERFACES = 32
# Their traffic passes a physical interface as well (bridges, container pairs, tunnels, bonds)
_VIRTUAL = re.compile(
    r"^(veth|docker|br-|virbr|cni|flannel|cali|cilium|lxc|tun|tap|wg|tailscale|bond|dummy|ifb|kube|vnet|team)"
)


def interface_columns(root: str) -> dict[str, tuple[float, ...]]:
    """The 16 counters of each interface as in /proc/net/dev: eight received, eight sent."""
    columns = {}
    for line in files.read_text(root + "proc/net/dev").splitlines()[2:]:
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) >= 16:
            columns[name.strip()] = tuple(float(word) for word in words[:16])
    return columns


def interface_counters(root: str) -> dict[str, tuple[float, float]]:
    """Received and sent bytes since the interface came up, by name, without loopback."""
    return {name: (columns[0], columns[8]) for name, columns in interface_columns(root).items() if name != "lo"}


def carriers(root: str, names: list[str]) -> list[str]:
    """Those interfaces whose sum is the machine's traffic: hardware ones; in a container, whatever is not a known virtual kind."""
    hardware = [name for name in names if os.path.exists(f"{root}sys/class/net/{name}/device")]
    return hardware or [name for name in names if not _VIRTUAL.match(name)]


class NetworkReader:
    def __init__(self, root: str) -> None:
        self._root = root
        self._history = CounterHistory()

    def read(self, now: float) -> dict[str, object]:
        counters = interface_counters(self._root)
        rates = {name: rate for name, value in counters.items() if (rate := self._rate(name, now, value)) is not None}
        self._history.forget_except(set(counters))
        return {"interfaces": _rows(rates), **_totals(rates, carriers(self._root, list(counters)))}

    def _rate(self, name: str, now: float, value: tuple[float, float]) -> tuple[float, float] | None:
        interval = self._history.interval(name, now, value)
        return (interval.per_second(0), interval.per_second(1)) if interval is not None else None


def _rows(rates: dict[str, tuple[float, float]]) -> list[dict[str, object]]:
    shown = [name for name in rates if not name.startswith("veth")][:_MOST_INTERFACES]
    return [
        {"name": name, "rx_bytes_per_second": rates[name][0], "tx_bytes_per_second": rates[name][1]} for name in shown
    ]


def _totals(rates: dict[str, tuple[float, float]], names: list[str]) -> dict[str, float]:
    """Absent unless every interface that carries traffic has a rate: a part would look like a quiet machine."""
    if not names or any(name not in rates for name in names):
        return {}
    return {
        "network_rx_bytes_per_second": sum(rates[name][0] for name in names),
        "network_tx_bytes_per_second": sum(rates[name][1] for name in names),
    }
