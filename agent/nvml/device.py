"""One GPU, or one MIG instance: everything that can be read of it now, and why the rest cannot."""

from __future__ import annotations

from agent.nvml import gpm
from agent.nvml.calls import GPU_IS_LOST, LASTING, RESET_REQUIRED, UnavailableError
from agent.nvml.field_values import (
    COUNTERS,
    MEMORY_TEMPERATURE,
    RECOVERY_ACTION,
    counter_bytes,
    missing_reason,
    read_field_values,
)
from agent.nvml.processes import described, running_processes
from agent.nvml.readings import MIG_READINGS, READINGS, pcie_window, unified_memory
from agent.ranges import plausible
from agent.rates import CounterHistory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent.nvml.inventory import Identity

# What a driver lacks today it lacks in an hour, but a reload may bring it: ask again now and then, never "not any more"
_ASK_AGAIN_SECONDS = 600.0
_PCIE_FIELDS = ("pcie_rx_bytes_per_second", "pcie_tx_bytes_per_second")


class LostError(Exception):
    """NVML says that this GPU has fallen off the bus."""


class Place:
    """Where processes and memory are looked up: the file tree, and whether its process ids are the host's."""

    __slots__ = ("host_ids", "root")

    def __init__(self, root: str, *, host_ids: bool) -> None:
        self.root = root
        self.host_ids = host_ids


class GpuReader:
    """``read`` leaves nothing out silently: a protocol field is in the sample, or in its ``unavailable`` with a reason."""

    def __init__(self, handle: Any, identity: Identity, place: Place) -> None:
        self.handle = handle
        self.identity = identity
        self._place = place
        self._asleep: dict[str, tuple[float, str]] = {}
        self._history = CounterHistory()
        self._gpm: gpm.GpmReader | None = None
        self._values: dict[str, object] = {}
        self._reasons: dict[str, str] = {}
        self.dropped_processes = 0
        self.reset_required = False

    def read(self, now: float, *, watch_pcie: bool = False) -> dict[str, object]:
        """One GPU sample of the protocol. Raises LostError.

        ``watch_pcie`` allows the one call that blocks (20 ms for each direction), where PCIe traffic is not counted otherwise.
        """
        self._values, self._reasons = {}, {}
        self.reset_required = False
        mig = self.identity.mig_parent is not None
        for reading, fields in MIG_READINGS if mig else READINGS:
            self._attempt(fields, now, lambda reading=reading: self._keep(reading(self.handle)))
        if not self.identity.owns_memory:
            self._withhold_memory()
        elif self._reasons.get("memory_used_bytes") == "not_supported" and not mig:
            self._fall_back_to_unified_memory()
        if not mig:
            self._attempt(("memory_temperature_celsius", *COUNTERS), now, lambda: self._read_field_values(now))
        self._attempt(tuple(field for field, _ in gpm.METRICS.values()), now, self._read_gpm, name="gpm")
        if watch_pcie and self.lacks_pcie_rates:
            self._attempt(_PCIE_FIELDS, now, lambda: self._keep(pcie_window(self.handle)), name="pcie window")
        if self.identity.mig_enabled:
            self._reasons["process_count"] = "counted_on_mig_instances"
        else:
            self._attempt(("process_count",), now, self._read_processes)
        return self._finished()

    @property
    def lacks_pcie_rates(self) -> bool:
        """Neither this chip's activity counters nor its driver count PCIe bytes (until Ada, or before R565)."""
        counted = self._gpm is not None or self.identity.mig_parent is not None
        return not counted and any(self._reasons.get(field) in LASTING for field in _PCIE_FIELDS)

    def restart_activity(self) -> None:
        if self._gpm is not None:
            self._gpm.restart()

    def close(self) -> None:
        if self._gpm is not None:
            try:
                self._gpm.close()
            except UnavailableError:
                # The GPU or the driver is gone, and what NVML had allocated with it
                self._gpm = None

    def _attempt(self, fields: tuple[str, ...], now: float, read: Any, name: str = "") -> None:
        key = name or fields[0]
        until, reason = self._asleep.get(key, (0.0, ""))
        if now < until:
            self._reasons.update({field: reason for field in fields if field not in self._values})
            return
        try:
            read()
            self._asleep.pop(key, None)
        except UnavailableError as error:
            self._note_failure(key, fields, now, error)

    def _note_failure(self, key: str, fields: tuple[str, ...], now: float, error: UnavailableError) -> None:
        if error.code == GPU_IS_LOST:
            raise LostError(self.identity.uuid) from error
        if error.code == RESET_REQUIRED:
            self.reset_required = True
        if error.reason in LASTING:
            self._asleep[key] = (now + _ASK_AGAIN_SECONDS, error.reason)
        self._reasons.update({field: error.reason for field in fields if field not in self._values})

    def _keep(self, pairs: list[tuple[str, float | bool]]) -> None:
        for field, value in pairs:
            if isinstance(value, bool) or plausible(field, value):
                self._values[field] = value
            else:
                self._reasons[field] = "out_of_range"

    def _withhold_memory(self) -> None:
        """Compute instances of one GPU instance share its memory: given once, or sums over instances count it twice."""
        for field in [name for name in self._values if name.startswith("memory_")]:
            del self._values[field]
            self._reasons[field] = "shared_with_sibling"

    def _fall_back_to_unified_memory(self) -> None:
        try:
            self._keep(unified_memory(self._place.root))
        except (UnavailableError, OSError):
            return
        for field in ("memory_used_bytes", "memory_total_bytes"):
            self._reasons.pop(field, None)

    def _read_field_values(self, now: float) -> None:
        values, reasons = read_field_values(self.handle)
        if MEMORY_TEMPERATURE in values:
            self._keep([("memory_temperature_celsius", values[MEMORY_TEMPERATURE])])
        else:
            self._reasons["memory_temperature_celsius"] = reasons[MEMORY_TEMPERATURE]
        # 0 is "nothing to do"; anything else asks for a reset, a reboot or a drain (nvml.h, nvmlDeviceGpuRecoveryAction_t)
        self.reset_required = self.reset_required or values.get(RECOVERY_ACTION, 0) not in (0, None)
        for field in COUNTERS:
            self._keep_rate(field, now, counter_bytes(values, field), missing_reason(reasons, field))

    def _keep_rate(self, field: str, now: float, counter: float | None, reason: str) -> None:
        if counter is None:
            self._reasons[field] = reason
            return
        interval = self._history.interval(field, now, (counter,))
        if interval is not None:
            self._keep([(field, interval.per_second(0))])

    def _read_gpm(self) -> None:
        """Where the chip has GPM its PCIe and NVLink figures replace those from counters."""
        if self._gpm is None:
            chip = self.identity.parent_handle or self.handle
            if not gpm.supported(chip):
                raise UnavailableError("not_supported")
            self._gpm = gpm.GpmReader(chip, self.identity.gpu_instance_id)
        values, reasons = self._gpm.read()
        for field, _ in gpm.METRICS.values():
            # Whatever a counter lacked, this is the better source; at its first read it only has nothing to say yet
            self._reasons.pop(field, None)
        self._values.update(values)
        self._reasons.update({field: reason for field, reason in reasons.items() if field not in self._values})

    def _read_processes(self) -> None:
        processes = running_processes(self.handle, root=self._place.root)
        self.dropped_processes = processes.dropped
        fields = described(processes, host_ids=self._place.host_ids, root=self._place.root)
        if not fields:
            self._reasons["process_count"] = "pid_namespace"
        self._values.update(fields)

    def _finished(self) -> dict[str, object]:
        sample: dict[str, object] = {"uuid": self.identity.uuid, "state": "ok", **self._values}
        reasons = {field: reason for field, reason in self._reasons.items() if field not in self._values}
        if reasons:
            sample["unavailable"] = reasons
        return sample
