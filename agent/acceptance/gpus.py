"""GPUs as the driver names them, and the links to the machine, in an NVML session of this process."""

from __future__ import annotations

import contextlib
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Row = dict[str, object]

_LOOKS, _LOOK_SECONDS = 4, 0.25
_BUSY_PERCENT = 5
_MOST_GENERATION, _MOST_WIDTH = 8, 32
_LINKS = {
    "pcie_generation": ("nvmlDeviceGetCurrPcieLinkGeneration", _MOST_GENERATION),
    "pcie_generation_max": ("nvmlDeviceGetMaxPcieLinkGeneration", _MOST_GENERATION),
    "pcie_width": ("nvmlDeviceGetCurrPcieLinkWidth", _MOST_WIDTH),
    "pcie_width_max": ("nvmlDeviceGetMaxPcieLinkWidth", _MOST_WIDTH),
}


class Gpus:
    """``trouble`` says why there are none to read."""

    def __init__(self) -> None:
        self.trouble = ""
        self._driver: Row = {}
        self._devices: list[tuple[Any, Any]] = []
        self._expected = 0
        self._links: dict[str, dict[str, int]] = {}
        self._loaded = False

    @classmethod
    @contextlib.contextmanager
    def opened(cls) -> Iterator[Gpus]:
        """Never raises for what NVML does: a machine without it is still tested."""
        gpus = cls()
        try:
            from agent.nvml.calls import UnavailableError, call
        except ModuleNotFoundError as error:
            gpus.trouble = f"the Python package nvidia-ml-py is not installed ({error.name} is missing)"
            yield gpus
            return
        try:
            call("nvmlInit")
        except UnavailableError as error:
            gpus.trouble = f"NVML cannot be used ({error.reason})"
            yield gpus
            return
        try:
            gpus._find()
            yield gpus
        finally:
            with contextlib.suppress(UnavailableError):
                call("nvmlShutdown")

    @property
    def uuids(self) -> list[str]:
        """Of whole cards, in the driver's order."""
        return [identity.uuid for _, identity in self._devices]

    def busy(self) -> list[int]:
        """Numbers of the cards that work now; where a card does not say, one that is used by a process counts."""
        seen: set[int] = set()
        for look in range(_LOOKS if self._devices else 0):
            if look:
                time.sleep(_LOOK_SECONDS)
            seen.update(identity.index for handle, identity in self._devices if _works(handle))
        return sorted(seen)

    def note_links(self, *, loaded: bool) -> None:
        """The best that each link was seen at: idle ones slow down."""
        self._loaded = self._loaded or loaded
        for handle, identity in self._devices:
            known = self._links.setdefault(identity.uuid, {})
            for name, value in _read_links(handle).items():
                known[name] = max(value, known.get(name, 0))

    def described(self, rates: dict[str, Row]) -> Row:
        """Raises NotMeasuredError where there is no NVML."""
        from agent.acceptance.unmeasured import NotMeasuredError

        if self.trouble:
            raise NotMeasuredError(self.trouble)
        self.note_links(loaded=False)
        rows = [
            {
                **_row(identity),
                **self._links.get(identity.uuid, {}),
                **rates.get(identity.uuid, {}),
            }
            for _, identity in self._devices
        ]
        return {
            **self._driver,
            "count": len(rows),
            "expected": self._expected,
            "under_load": self._loaded,
            "gpus": rows,
        }

    def _find(self) -> None:
        from agent.nvml.calls import UnavailableError
        from agent.nvml.inventory import find_devices
        from agent.nvml.session import driver_facts

        try:
            found = find_devices()
        except UnavailableError as error:
            self.trouble = f"the GPUs cannot be counted ({error.reason})"
            return
        self._driver, self._expected = driver_facts(), found.expected
        self._devices = [(handle, identity) for handle, identity in found.devices if identity.mig_parent is None]


def _row(identity: Any) -> Row:
    fields = ("uuid", "index", "name", "memory_total_bytes", "pci_bus_id")
    row = {field: value for field in fields if (value := getattr(identity, field)) is not None}
    return {**row, **({"mig": True} if identity.mig_enabled else {})}


def _works(handle: Any) -> bool:
    from agent.nvml.calls import UnavailableError, call

    try:
        return bool(call("nvmlDeviceGetUtilizationRates", handle).gpu >= _BUSY_PERCENT)
    except UnavailableError:
        pass
    try:
        return bool(call("nvmlDeviceGetComputeRunningProcesses", handle))
    except UnavailableError:
        return False


def _read_links(handle: Any) -> dict[str, int]:
    from agent.nvml.calls import UnavailableError, call

    found = {}
    for name, (function, most) in _LINKS.items():
        with contextlib.suppress(UnavailableError):
            value = call(function, handle)
            if isinstance(value, int) and 1 <= value <= most:
                found[name] = value
    return found
