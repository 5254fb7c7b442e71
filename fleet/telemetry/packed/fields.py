"""What packed hours keep of each reading, and how exactly. Pure: no Django, no clock.

A reading becomes a whole number: itself, tenths of a watt, its three leading digits. Doing it twice changes nothing, so that an hour can be
unpacked, get late samples, and be packed again as often as need be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class Precision(Protocol):
    def wholes(self, values: Iterable[float]) -> list[int]: ...

    def values(self, wholes: Sequence[int]) -> Sequence[float]: ...


@dataclass(frozen=True, slots=True)
class Exact:
    """Whole numbers as they are."""

    def wholes(self, values: Iterable[float]) -> list[int]:
        return [int(value) for value in values]

    def values(self, wholes: Sequence[int]) -> Sequence[float]:
        return wholes


@dataclass(frozen=True, slots=True)
class Decimals:
    """So many digits behind the point."""

    count: int

    def wholes(self, values: Iterable[float]) -> list[int]:
        scale = 10**self.count
        return [round(value * scale) for value in values]

    def values(self, wholes: Sequence[int]) -> Sequence[float]:
        scale = 10**self.count
        return [whole / scale for whole in wholes]


@dataclass(frozen=True, slots=True)
class Digits:
    """So many leading digits, whatever the size; with three that is 0.5 % of the value at most.

    Numbered in the order of the values, zero in the middle, so that values close to each other have numbers close to each other.
    """

    count: int
    # Smaller than any reading: a nanosecond is 1e-9.
    least_exponent: int = -12

    @property
    def _first(self) -> int:
        """The lowest number of so many digits."""
        return int(10 ** (self.count - 1))

    def wholes(self, values: Iterable[float]) -> list[int]:
        return [self._whole(value) for value in values]

    def _whole(self, value: float) -> int:
        digits, _, exponent = f"{abs(value):.{self.count - 1}e}".partition("e")
        place = int(exponent) - self.least_exponent
        if value == 0 or place < 0:
            return 0
        first = self._first
        whole = place * 9 * first + int(digits.replace(".", "")) - first + 1
        return whole if value > 0 else -whole

    def values(self, wholes: Sequence[int]) -> Sequence[float]:
        known = {whole: self._value(whole) for whole in set(wholes)}
        return [known[whole] for whole in wholes]

    def _value(self, whole: int) -> float:
        if whole == 0:
            return 0.0
        first = self._first
        place, digits = divmod(abs(whole) - 1, 9 * first)
        # As text, because that gives the nearest float, from which the same digits are read again.
        value = float(f"{digits + first}e{place + self.least_exponent - self.count + 1}")
        return value if whole > 0 else -value


@dataclass(frozen=True, slots=True)
class Field:
    """`code` stands for the reading in packed rows: codes are added, never changed. `precision` None: text, kept as it is."""

    code: int
    precision: Precision | None = Exact()


PERCENT, RATIO, TENTHS, DIGITS = Decimals(2), Decimals(3), Decimals(1), Digits(3)

GPU_FIELDS: Mapping[str, Field] = {
    # Microseconds since the epoch.
    "sampled_at": Field(0),
    "state": Field(1),
    "utilization_percent": Field(2, PERCENT),
    "memory_utilization_percent": Field(3, PERCENT),
    "memory_used_bytes": Field(4),
    "memory_reserved_bytes": Field(5),
    "sm_activity": Field(6, RATIO),
    "sm_occupancy": Field(7, RATIO),
    "tensor_activity": Field(8, RATIO),
    "dram_activity": Field(9, RATIO),
    "power_watts": Field(10, DIGITS),
    "power_limit_watts": Field(11, TENTHS),
    "temperature_celsius": Field(12, TENTHS),
    "memory_temperature_celsius": Field(13, TENTHS),
    "sm_clock_mhz": Field(14),
    "memory_clock_mhz": Field(15),
    "throttle_reasons": Field(16),
    "pcie_rx_bytes_per_second": Field(17, DIGITS),
    "pcie_tx_bytes_per_second": Field(18, DIGITS),
    "nvlink_rx_bytes_per_second": Field(19, DIGITS),
    "nvlink_tx_bytes_per_second": Field(20, DIGITS),
    "process_count": Field(21),
    "process_memory_bytes": Field(22),
}
HOST_FIELDS: Mapping[str, Field] = {
    "sampled_at": Field(0),
    "devices": Field(1, None),
    "cpu_percent": Field(2, PERCENT),
    "cpu_iowait_percent": Field(3, PERCENT),
    "load1": Field(4, PERCENT),
    "memory_used_bytes": Field(5),
    "pressure_cpu_percent": Field(6, PERCENT),
    "pressure_memory_percent": Field(7, PERCENT),
    "pressure_io_percent": Field(8, PERCENT),
    "disk_read_bytes_per_second": Field(9, DIGITS),
    "disk_write_bytes_per_second": Field(10, DIGITS),
    "disk_read_iops": Field(11, DIGITS),
    "disk_write_iops": Field(12, DIGITS),
    "disk_read_latency_seconds": Field(13, DIGITS),
    "disk_write_latency_seconds": Field(14, DIGITS),
    "disk_busy_percent": Field(15, PERCENT),
    "network_rx_bytes_per_second": Field(16, DIGITS),
    "network_tx_bytes_per_second": Field(17, DIGITS),
    "filesystem_used_bytes": Field(18),
    "ssh_sessions": Field(19),
    "jupyter_busy_kernels": Field(20),
}
