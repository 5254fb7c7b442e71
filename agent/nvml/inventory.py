"""Which GPUs and MIG instances there are, each found by itself: one that is lost does not hide the others."""

from __future__ import annotations

import re

import pynvml

from agent.nvml.calls import NOT_FOUND, UnavailableError, call, call_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

UNKNOWN_NAME = "unknown GPU"
_UUID = re.compile(r"^(GPU|MIG)-[0-9A-Za-z/-]{8,90}$")
_MIG_NAME = re.compile(r"\bMIG (\S+)$")
_MIB = 1 << 20
_MOST_GPUS = 64


class Identity:
    """What a GPU is, apart from what it does. ``owns_memory`` is False for all but the first compute instance of a GPU instance."""

    __slots__ = (
        "gpu_instance_id",
        "index",
        "memory_total_bytes",
        "mig_enabled",
        "mig_parent",
        "mig_profile",
        "name",
        "owns_memory",
        "parent_handle",
        "pci_bus_id",
        "uuid",
    )

    def __init__(self, uuid: str, index: int, name: str) -> None:
        self.uuid = uuid
        self.index = index
        self.name = name
        self.memory_total_bytes: int | None = None
        self.pci_bus_id: str | None = None
        self.mig_parent: str | None = None
        self.mig_profile: str | None = None
        self.gpu_instance_id: int | None = None
        self.parent_handle: Any = None
        self.owns_memory = True
        self.mig_enabled = False

    def row(self) -> dict[str, object]:
        """The protocol's inventory row and the number of a GPU instance; what is not known is left out."""
        fields = (
            "uuid",
            "index",
            "name",
            "memory_total_bytes",
            "pci_bus_id",
            "mig_parent",
            "mig_profile",
            "gpu_instance_id",
        )
        return {field: value for field in fields if (value := getattr(self, field)) is not None}


class Found:
    """``unreadable`` says per index why a GPU that the driver counts could not be opened."""

    __slots__ = ("devices", "expected", "suspect_text", "unreadable")

    def __init__(self, expected: int) -> None:
        self.expected = expected
        self.devices: list[tuple[Any, Identity]] = []
        self.unreadable: dict[int, str] = {}
        self.suspect_text = False


def find_devices() -> Found:
    """Every GPU and MIG instance that answers. Raises UnavailableError when not even their number can be read."""
    found = Found(call("nvmlDeviceGetCount"))
    for index in range(min(found.expected, _MOST_GPUS)):
        try:
            _add_gpu(found, _handle(index), index)
        except UnavailableError as error:
            found.unreadable[index] = error.reason
    return found


def _handle(index: int) -> Any:
    """Never a null pointer: passed into the library it is a crash."""
    handle = call("nvmlDeviceGetHandleByIndex", index)
    if not handle:
        raise UnavailableError("null_handle")
    return handle


def _add_gpu(found: Found, handle: Any, index: int) -> None:
    pci_bus_id = _pci_bus_id(handle)
    identity = Identity(_uuid(found, handle, pci_bus_id or f"index-{index}"), index, _name(found, handle))
    identity.pci_bus_id = pci_bus_id
    identity.memory_total_bytes = _memory_total(handle)
    found.devices.append((handle, identity))
    identity.mig_enabled = _mig_enabled(handle)
    for mig_handle in _mig_handles(handle) if identity.mig_enabled else []:
        _add_mig_instance(found, mig_handle, handle, identity)


def _add_mig_instance(found: Found, handle: Any, parent_handle: Any, parent: Identity) -> None:
    try:
        uuid, instance = call_text("nvmlDeviceGetUUID", handle), call("nvmlDeviceGetGpuInstanceId", handle)
    except UnavailableError as error:
        found.unreadable.setdefault(parent.index, f"mig_{error.reason}")
        return
    identity = Identity(uuid, parent.index, parent.name)
    identity.mig_parent, identity.parent_handle, identity.gpu_instance_id = parent.uuid, parent_handle, instance
    identity.mig_profile = _mig_profile(handle)
    siblings = [
        other for _, other in found.devices if other.mig_parent == parent.uuid and other.gpu_instance_id == instance
    ]
    identity.owns_memory = not siblings
    identity.memory_total_bytes = _memory_total(handle) if not siblings else None
    found.devices.append((handle, identity))


def _uuid(found: Found, handle: Any, fallback: str) -> str:
    """Some driver builds return garbage for text: such a GPU still needs a name that stays the same."""
    try:
        uuid = call_text("nvmlDeviceGetUUID", handle)
    except UnavailableError as error:
        if error.reason != "undecodable":
            raise
        uuid = ""
    if _UUID.match(uuid):
        return uuid
    found.suspect_text = True
    return f"GPU-at-{fallback}"


def _name(found: Found, handle: Any) -> str:
    try:
        return call_text("nvmlDeviceGetName", handle)
    except UnavailableError as error:
        found.suspect_text = found.suspect_text or error.reason == "undecodable"
        return UNKNOWN_NAME


def _pci_bus_id(handle: Any) -> str | None:
    try:
        raw = call("nvmlDeviceGetPciInfo_v3", handle).busId
    except UnavailableError:
        return None
    text = raw.decode("ascii", "replace") if isinstance(raw, bytes) else str(raw)
    return text if re.match(r"^[0-9A-Fa-f:.]{7,20}$", text) else None


def _memory_total(handle: Any) -> int | None:
    for arguments in ((pynvml.nvmlMemory_v2,), ()):
        try:
            total = call("nvmlDeviceGetMemoryInfo", handle, *arguments).total
        except UnavailableError:
            continue
        return int(total) if 0 < total < 1 << 46 else None
    return None


def _mig_enabled(handle: Any) -> bool:
    try:
        current, _ = call("nvmlDeviceGetMigMode", handle)
    except UnavailableError:
        return False
    return bool(current == pynvml.NVML_DEVICE_MIG_ENABLE)


def _mig_handles(handle: Any) -> list[Any]:
    """Instances are numbered with holes."""
    try:
        places = call("nvmlDeviceGetMaxMigDeviceCount", handle)
    except UnavailableError:
        return []
    handles = []
    for place in range(min(places, _MOST_GPUS)):
        try:
            handles.append(call("nvmlDeviceGetMigDeviceHandleByIndex", handle, place))
        except UnavailableError as error:
            if error.code not in (NOT_FOUND, 2):
                break
    return handles


def _mig_profile(handle: Any) -> str | None:
    """Such as ``1g.18gb``: new drivers say it in the name, old ones only in the attributes."""
    try:
        named = _MIG_NAME.search(call_text("nvmlDeviceGetName", handle))
        if named:
            return named.group(1)
        attributes = call("nvmlDeviceGetAttributes_v2", handle)
        return f"{attributes.gpuInstanceSliceCount}g.{round(attributes.memorySizeMB / 1024)}gb"
    except UnavailableError:
        return None
