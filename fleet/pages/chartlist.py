"""Which charts the page of a machine has, and which readings each of them shows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from fleet.formats import bytes_text, number_text, rate_text


def percent_text(value: float) -> str:
    return f"{number_text(value)}%"


@dataclass(frozen=True, slots=True)
class Line:
    """One reading of a chart."""

    field: str
    name: str | Promise
    dash: str = "solid"


@dataclass(frozen=True, slots=True)
class Chart:
    """`per_gpu` charts have a line a GPU, the others a line a reading of the machine. `factor` turns the stored unit into the axis's."""

    name: str
    title: str | Promise
    lines: tuple[Line, ...]
    text: Callable[[float], str]
    unit: str
    factor: float = 1.0
    # How figures are written: "rate" and "bytes" choose their unit by size, else the axis's is used. Axes of rates choose too.
    measure: str = ""
    per_gpu: bool = False
    # Of serving endpoints, whose readings come by themselves.
    serving: bool = False
    top: float | None = None
    optional: bool = False
    fields: tuple[str, ...] = field(init=False)

    @property
    def source(self) -> str:
        """Whose readings renew it while the page is open."""
        return "serving" if self.serving else "gpu" if self.per_gpu else "host"

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(line.field for line in self.lines))


GIB = 1 << 30
CHARTS = (
    Chart(
        "busy",
        _("Busy, GPU by GPU"),
        (Line("utilization_percent", _("busy")),),
        percent_text,
        "%",
        per_gpu=True,
        top=100,
    ),
    Chart(
        "activity",
        _("SM activity"),
        (Line("sm_activity", _("SM")),),
        lambda value: percent_text(100 * value),
        "%",
        factor=100,
        per_gpu=True,
        top=100,
        optional=True,
    ),
    Chart(
        "memory",
        _("GPU memory"),
        (Line("memory_used_bytes", _("used")),),
        bytes_text,
        " GiB",
        factor=1 / GIB,
        measure="bytes",
        per_gpu=True,
    ),
    Chart(
        "power",
        _("Power"),
        (Line("power_watts", _("power")),),
        lambda value: f"{number_text(value)} W",
        " W",
        per_gpu=True,
    ),
    Chart(
        "temperature",
        _("Temperature"),
        (Line("temperature_celsius", _("temperature")),),
        lambda value: f"{number_text(value)} °C",
        " °C",
        per_gpu=True,
    ),
    Chart(
        "disk_iops",
        _("Disk operations"),
        (
            Line("disk_read_iops", pgettext_lazy("disk", "read")),
            Line("disk_write_iops", pgettext_lazy("disk", "write"), "dot"),
        ),
        lambda value: f"{number_text(value)}/s",
        "/s",
    ),
    Chart(
        "disk_bandwidth",
        _("Disk bandwidth"),
        (
            Line("disk_read_bytes_per_second", pgettext_lazy("disk", "read")),
            Line("disk_write_bytes_per_second", pgettext_lazy("disk", "write"), "dot"),
        ),
        rate_text,
        " B/s",
        measure="rate",
    ),
    Chart(
        "network",
        _("Network bandwidth"),
        (
            Line("network_rx_bytes_per_second", pgettext_lazy("network", "in")),
            Line("network_tx_bytes_per_second", pgettext_lazy("network", "out"), "dot"),
        ),
        rate_text,
        " B/s",
        measure="rate",
    ),
    Chart(
        "cpu",
        _("Processor"),
        (Line("cpu_percent", _("busy")), Line("cpu_iowait_percent", _("waits for disk"), "dot")),
        percent_text,
        "%",
        top=100,
    ),
    Chart(
        "host_memory",
        _("Machine memory"),
        (Line("memory_used_bytes", _("used")),),
        bytes_text,
        " GiB",
        factor=1 / GIB,
        measure="bytes",
    ),
)
