"""XID errors as events: taken out of NVML's event queue, each once."""

from __future__ import annotations

import ctypes

import pynvml

from agent.nvml.calls import TIMEOUT, UnavailableError, call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agent.nvml.inventory import Identity

_MOST_EVENTS = 64


class XidQueue:
    """NVML keeps events from the moment a GPU is registered; it tells neither their time nor those of before."""

    def __init__(self) -> None:
        self._set: Any = None
        self._uuids: dict[int, str] = {}
        self.unsupported = ""

    def register(self, devices: list[tuple[Any, Identity]]) -> None:
        """Listen to these GPUs and no others. Where NVML has no events (vGPU, WSL), ``unsupported`` says why."""
        self.close()
        try:
            self._set = call("nvmlEventSetCreate")
        except UnavailableError as error:
            self.unsupported = error.reason
            return
        for handle, identity in devices:
            if identity.mig_parent is None:
                self._register_one(handle, identity.uuid)

    def drain(self) -> list[tuple[str, int]]:
        """(GPU uuid, XID) of everything that happened since the last call, without waiting."""
        happened: list[tuple[str, int]] = []
        while self._set is not None and len(happened) < _MOST_EVENTS:
            try:
                event = call("nvmlEventSetWait_v2", self._set, 0)
            except UnavailableError as error:
                if error.code != TIMEOUT:
                    self.unsupported = error.reason
                break
            if event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                happened.append((self._uuid(event.device), int(event.eventData)))
        return happened

    def close(self) -> None:
        if self._set is None:
            return
        try:
            call("nvmlEventSetFree", self._set)
        except UnavailableError as error:
            self.unsupported = error.reason
        self._set, self._uuids = None, {}

    def _register_one(self, handle: Any, uuid: str) -> None:
        try:
            call("nvmlDeviceRegisterEvents", handle, pynvml.nvmlEventTypeXidCriticalError, self._set)
        except UnavailableError as error:
            self.unsupported = error.reason
        else:
            self._uuids[_address(handle)] = uuid

    def _uuid(self, handle: Any) -> str:
        return self._uuids.get(_address(handle), "")


def _address(handle: Any) -> int:
    """The value of NVML's opaque pointer: two ctypes objects for one GPU are not equal, what they point to is."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
