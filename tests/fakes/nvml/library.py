"""NVML in Python: takes the arguments that pynvml hands to C, and writes its answers where C would."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pynvml

PROFILES = Path(__file__).parent / "profiles"
SUCCESS, INVALID, NOT_SUPPORTED, NOT_FOUND, INSUFFICIENT_SIZE, TIMEOUT = 0, 2, 3, 6, 7, 10
ULONGLONG = 3


class Device:
    def __init__(self, said: dict[str, Any]) -> None:
        self.said = said
        self.values: dict[str, float] = said["values"]
        self.processes: list[tuple[int, int]] = said.get("processes", [])
        self.struct = pynvml.struct_c_nvmlDevice_t()
        self.migs = [Device(row) for row in said.get("mig", [])]


class FakeNvml:
    """``fail[(function, uuid or "")] = code`` breaks a call for one GPU, or for all; ``calls`` counts them."""

    def __init__(self, profile: str | dict[str, Any]) -> None:
        said = json.loads((PROFILES / f"{profile}.json").read_text()) if isinstance(profile, str) else profile
        self.said = copy.deepcopy(said)
        self.devices = [Device(row) for row in self.said["gpus"]]
        self.absent = set(self.said["absent_functions"])
        self.fail: dict[tuple[str, str], int] = {}
        self.calls: dict[str, int] = {}
        self.events: list[tuple[str, int]] = []
        self.open = 0
        self.gpm_samples = 0
        self.before_call: Callable[[str], None] = lambda _name: None

    def __getattr__(self, name: str) -> Any:
        """A function of the library; AttributeError, as from ctypes, where this driver does not have it."""
        if not name.startswith("nvml") or name in self.absent or not hasattr(type(self), "do_" + name):
            raise AttributeError(name)
        return lambda *arguments: self._run(name, arguments)

    def device(self, uuid: str) -> Device:
        return next(device for device in self._all() if device.said["uuid"] == uuid)

    def advance(self, seconds: float) -> None:
        """Let counters grow."""
        for device in self._all():
            for key, rate in device.said.get("per_second", {}).items():
                device.values[key] += rate * seconds

    def _run(self, name: str, arguments: tuple[Any, ...]) -> int:
        self.calls[name] = self.calls.get(name, 0) + 1
        self.before_call(name)
        uuid = (
            self._find(arguments[0]).said["uuid"]
            if arguments and isinstance(arguments[0], pynvml.c_nvmlDevice_t)
            else ""
        )
        code = (
            self.fail.get((name, uuid)) or self.fail.get((name, "")) or self.fail.get(("", uuid) if uuid else ("-", ""))
        )
        if code and name != "nvmlErrorString":
            return code
        answer = getattr(self, "do_" + name)(*arguments)
        return SUCCESS if answer is None else answer

    def _all(self) -> list[Device]:
        return [one for device in self.devices for one in (device, *device.migs)]

    def _find(self, handle: Any) -> Device:
        assert handle, "a null handle was passed into the library: that is a crash"
        address = ctypes.addressof(handle.contents)
        return next(device for device in self._all() if ctypes.addressof(device.struct) == address)

    def _write(self, handle: Any, *pairs: tuple[str, Any]) -> int | None:
        """Put values where the references point; not supported when the card has none of them."""
        values = self._find(handle).values
        if any(key not in values for key, _ in pairs):
            return NOT_SUPPORTED
        for key, reference in pairs:
            reference._obj.value = int(values[key])
        return None

    # The library as a whole

    def do_nvmlInitWithFlags(self, _flags: Any) -> None:
        self.open += 1

    def do_nvmlShutdown(self) -> None:
        self.open -= 1

    def do_nvmlErrorString(self, code: Any) -> bytes:
        return b"error %d" % code

    def do_nvmlSystemGetDriverVersion(self, buffer: Any, _size: Any) -> None:
        buffer.value = self.said["driver"].encode()

    def do_nvmlSystemGetNVMLVersion(self, buffer: Any, _size: Any) -> None:
        buffer.value = self.said["nvml"].encode()

    def do_nvmlSystemGetCudaDriverVersion_v2(self, reference: Any) -> None:
        reference._obj.value = self.said["cuda"]

    def do_nvmlDeviceGetCount_v2(self, reference: Any) -> None:
        reference._obj.value = len(self.devices)

    def do_nvmlDeviceGetHandleByIndex_v2(self, index: Any, reference: Any) -> int | None:
        device = self.devices[index.value]
        code = self.fail.get(("nvmlDeviceGetHandleByIndex_v2", device.said["uuid"]))
        if code:
            return code
        if not device.said.get("null_handle"):
            reference._obj.contents = device.struct
        return None

    # What a GPU is

    def do_nvmlDeviceGetName(self, handle: Any, buffer: Any, _size: Any) -> None:
        buffer.value = _bytes(self._find(handle).said["name"])

    def do_nvmlDeviceGetUUID(self, handle: Any, buffer: Any, _size: Any) -> None:
        said = self._find(handle).said
        buffer.value = _bytes(said.get("uuid_text", said["uuid"]))

    def do_nvmlDeviceGetPciInfo_v3(self, handle: Any, reference: Any) -> None:
        reference._obj.busId = self._find(handle).said["pci_bus_id"].encode()

    def do_nvmlDeviceGetMigMode(self, handle: Any, current: Any, pending: Any) -> int | None:
        return self._write(handle, ("mig.mode", current), ("mig.mode", pending))

    def do_nvmlDeviceGetMaxMigDeviceCount(self, handle: Any, reference: Any) -> int | None:
        return self._write(handle, ("mig.places", reference))

    def do_nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: Any, reference: Any) -> int | None:
        migs = self._find(handle).migs
        if index.value >= len(migs):
            return NOT_FOUND
        reference._obj.contents = migs[index.value].struct
        return None

    def do_nvmlDeviceGetGpuInstanceId(self, handle: Any, reference: Any) -> int | None:
        return self._write(handle, ("gpu_instance", reference))

    # What a GPU does

    def do_nvmlDeviceGetUtilizationRates(self, handle: Any, reference: Any) -> int | None:
        values = self._find(handle).values
        if "utilization.gpu" not in values:
            return NOT_SUPPORTED
        reference._obj.gpu, reference._obj.memory = int(values["utilization.gpu"]), int(values["utilization.memory"])
        return None

    def do_nvmlDeviceGetMemoryInfo_v2(self, handle: Any, reference: Any) -> int | None:
        values, info = self._find(handle).values, reference._obj
        assert info.version == 0x02000028, "the structure's version must be passed in"
        if "memory.total" not in values:
            return NOT_SUPPORTED
        info.total, info.reserved, info.used = (int(values["memory." + key]) for key in ("total", "reserved", "used"))
        info.free = info.total - info.reserved - info.used
        return None

    def do_nvmlDeviceGetMemoryInfo(self, handle: Any, reference: Any) -> int | None:
        values = self._find(handle).values
        if "memory.total" not in values:
            return NOT_SUPPORTED
        reference._obj.total, reference._obj.used = int(values["memory.total"]), int(values["memory.used"])
        return None

    def do_nvmlDeviceGetPowerUsage(self, handle: Any, reference: Any) -> int | None:
        return self._write(handle, ("power_mw", reference))

    def do_nvmlDeviceGetEnforcedPowerLimit(self, handle: Any, reference: Any) -> int | None:
        return self._write(handle, ("power_limit_mw", reference))

    def do_nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, reference: Any) -> int | None:
        return self._write(handle, ("energy_mj", reference))

    def do_nvmlDeviceGetTemperature(self, handle: Any, _sensor: Any, reference: Any) -> int | None:
        return self._write(handle, ("temperature", reference))

    def do_nvmlDeviceGetClockInfo(self, handle: Any, kind: Any, reference: Any) -> int | None:
        return self._write(handle, ({1: "clock.sm", 2: "clock.memory"}[kind.value], reference))

    def do_nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: Any, reference: Any) -> int | None:
        return self._write(handle, ("throttle", reference))

    do_nvmlDeviceGetCurrentClocksEventReasons = do_nvmlDeviceGetCurrentClocksThrottleReasons

    def do_nvmlDeviceGetFanSpeed(self, handle: Any, reference: Any) -> int | None:
        return self._write(handle, ("fan", reference))

    def do_nvmlDeviceGetTotalEccErrors(self, handle: Any, kind: Any, _counter: Any, reference: Any) -> int | None:
        return self._write(handle, ("ecc.uncorrected" if kind.value else "ecc.corrected", reference))

    def do_nvmlDeviceGetRemappedRows(self, handle: Any, *references: Any) -> int | None:
        keys = ("remapped.corrected", "remapped.uncorrected", "remapped.pending", "remapped.failed")
        return self._write(handle, *zip(keys, references, strict=True))

    def do_nvmlDeviceGetEncoderUtilization(self, handle: Any, reference: Any, _period: Any) -> int | None:
        return self._write(handle, ("encoder", reference))

    def do_nvmlDeviceGetDecoderUtilization(self, handle: Any, reference: Any, _period: Any) -> int | None:
        return self._write(handle, ("decoder", reference))

    def do_nvmlDeviceGetPcieReplayCounter(self, handle: Any, reference: Any) -> int | None:
        return self._write(handle, ("pcie_replays", reference))

    def do_nvmlDeviceGetCurrPcieLinkGeneration(self, handle: Any, reference: Any) -> int | None:
        return self._write(handle, ("pcie.generation", reference))

    def do_nvmlDeviceGetMaxPcieLinkGeneration(self, handle: Any, reference: Any) -> int | None:
        return self._write(handle, ("pcie.generation_max", reference))

    def do_nvmlDeviceGetCurrPcieLinkWidth(self, handle: Any, reference: Any) -> int | None:
        return self._write(handle, ("pcie.width", reference))

    def do_nvmlDeviceGetMaxPcieLinkWidth(self, handle: Any, reference: Any) -> int | None:
        return self._write(handle, ("pcie.width_max", reference))

    def do_nvmlDeviceGetPcieThroughput(self, handle: Any, counter: Any, reference: Any) -> int | None:
        return self._write(handle, ("pcie_rx_kb" if counter.value else "pcie_tx_kb", reference))

    def do_nvmlDeviceGetFieldValues(self, handle: Any, _count: Any, reference: Any) -> None:
        values = self._find(handle).values
        for row in reference._obj:
            key = f"field.{row.fieldId}"
            row.nvmlReturn = SUCCESS if key in values else NOT_SUPPORTED
            row.valueType, row.value.ullVal = ULONGLONG, int(values.get(key, 0))

    def _processes(self, handle: Any, count: Any, rows: Any) -> int | None:
        """``processes_grow`` is how many more there are when asked the second time."""
        device = self._find(handle)
        if rows is None:
            count._obj.value = len(device.processes)
            return INSUFFICIENT_SIZE if device.processes else None
        device.processes = device.processes + device.said.pop("processes_grow", [])
        if len(device.processes) > len(rows):
            count._obj.value = len(device.processes)
            return INSUFFICIENT_SIZE
        count._obj.value = len(device.processes)
        for row, (pid, memory) in zip(rows, device.processes, strict=False):
            row.pid, row.usedGpuMemory = pid, memory
        return None

    do_nvmlDeviceGetComputeRunningProcesses_v3 = do_nvmlDeviceGetComputeRunningProcesses_v2 = _processes

    def do_nvmlDeviceGetGraphicsRunningProcesses_v3(self, handle: Any, count: Any, _rows: Any) -> None:
        self._find(handle)
        count._obj.value = 0

    do_nvmlDeviceGetGraphicsRunningProcesses_v2 = do_nvmlDeviceGetGraphicsRunningProcesses_v3

    # Events

    def do_nvmlEventSetCreate(self, reference: Any) -> None:
        reference._obj.contents = pynvml.struct_c_nvmlEventSet_t()

    def do_nvmlEventSetFree(self, _handle: Any) -> None:
        self.events.clear()

    def do_nvmlDeviceRegisterEvents(self, handle: Any, _kinds: Any, _set: Any) -> None:
        self._find(handle)

    def do_nvmlEventSetWait_v2(self, _set: Any, reference: Any, _milliseconds: Any) -> int | None:
        if not self.events:
            return TIMEOUT
        uuid, code = self.events.pop(0)
        reference._obj.device.contents = self.device(uuid).struct
        reference._obj.eventType, reference._obj.eventData = pynvml.nvmlEventTypeXidCriticalError, code
        return None

    # Activity counters

    def do_nvmlGpmQueryDeviceSupport(self, handle: Any, reference: Any) -> None:
        values = self._find(handle).values
        reference._obj.isSupportedDevice = int("gpm.2" in values or "gpm.supported" in values)

    def do_nvmlGpmSampleAlloc(self, reference: Any) -> None:
        self.gpm_samples += 1
        reference._obj.contents = pynvml.struct_c_nvmlGpmSample_t()

    def do_nvmlGpmSampleFree(self, _sample: Any) -> None:
        self.gpm_samples -= 1

    def do_nvmlGpmSampleGet(self, handle: Any, sample: Any) -> int | None:
        self._gpm_of = self._find(handle)
        return None if "gpm.2" in self._gpm_of.values else NOT_SUPPORTED

    def do_nvmlGpmMigSampleGet(self, handle: Any, instance: int, sample: Any) -> None:
        migs = self._find(handle).migs
        self._gpm_of = next(mig for mig in migs if mig.values["gpu_instance"] == instance)

    def do_nvmlGpmMetricsGet(self, reference: Any) -> None:
        request = reference._obj
        assert all((request.sample1, request.sample2)), "two samples are needed"
        for place in range(request.numMetrics):
            metric = request.metrics[place]
            key = f"gpm.{metric.metricId}"
            metric.nvmlReturn = SUCCESS if key in self._gpm_of.values else NOT_SUPPORTED
            metric.value = self._gpm_of.values.get(key, 0.0)


def _bytes(text: str | list[int]) -> bytes:
    """Profiles write text that is no UTF-8 as a list of bytes."""
    return text.encode() if isinstance(text, str) else bytes(text)


@contextlib.contextmanager
def installed(library: FakeNvml) -> Iterator[FakeNvml]:
    """pynvml believes that it has loaded ``library``."""
    before = pynvml.nvmlLib
    pynvml._nvmlGetFunctionPointer_cache.clear()
    pynvml.nvmlLib = library
    try:
        yield library
    finally:
        pynvml.nvmlLib = before
        pynvml._nvmlGetFunctionPointer_cache.clear()
