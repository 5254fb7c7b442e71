"""What DigitalOcean measured of a Droplet, from its Prometheus-like answers. Pure. It measures no GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from fleet.providers.base import ProviderUsage, Ref
from fleet.providers.http import JSON
from fleet.providers.rows import Row

# Bandwidth is told in megabits a second.
BYTES_PER_MEGABIT = 125_000.0
# Name of ours: path below /v2/monitoring/metrics/droplet/, and what it asks for beside host and time.
QUESTIONS: Mapping[str, tuple[str, dict[str, str]]] = {
    "cpu": ("cpu", {}),
    "memory_total": ("memory_total", {}),
    "memory_available": ("memory_available", {}),
    "received": ("bandwidth", {"interface": "public", "direction": "inbound"}),
    "sent": ("bandwidth", {"interface": "public", "direction": "outbound"}),
}


def usage_of(ref: Ref, answers: Mapping[str, JSON]) -> ProviderUsage:
    memory_total, memory_available = (newest(answers[name]) for name in ("memory_total", "memory_available"))
    received, sent = newest(answers["received"]), newest(answers["sent"])
    return ProviderUsage(
        ref=ref,
        at=measured_at(answers.values()),
        cpu_percent=cpu_percent(series_of(answers["cpu"])),
        memory_percent=None
        if memory_available is None or not memory_total
        else 100 * (1 - memory_available / memory_total),
        network_received_bytes_per_s=None if received is None else received * BYTES_PER_MEGABIT,
        network_sent_bytes_per_s=None if sent is None else sent * BYTES_PER_MEGABIT,
    )


def series_of(answer: JSON) -> list[Row]:
    return list(answer["data"]["result"])


def newest(answer: JSON) -> float | None:
    points = [point for series in series_of(answer) for point in series["values"]]
    return float(max(points, key=lambda point: point[0])[1]) if points else None


def measured_at(answers: Iterable[JSON]) -> datetime | None:
    times = [point[0] for answer in answers for series in series_of(answer) for point in series["values"]]
    return datetime.fromtimestamp(max(times), UTC) if times else None


def cpu_percent(series: list[Row]) -> float | None:
    """From the last two readings of seconds in each mode. None where a counter went back, or there are not two."""
    spent: dict[str, float] = {}
    for one in series:
        if len(one["values"]) < 2:
            return None
        spent[one["metric"]["mode"]] = float(one["values"][-1][1]) - float(one["values"][-2][1])
    total = sum(spent.values())
    if total <= 0 or min(spent.values()) < 0 or "idle" not in spent:
        return None
    return 100 * (1 - spent["idle"] / total)
