"""Processes on a GPU. NVML speaks of the host's process ids; in a container they mean nothing, or another process."""

from __future__ import annotations

from agent.host.files import read_number, read_text_or_none
from agent.host.users import user_of
from agent.nvml.calls import LASTING, UnavailableError, call
from agent.ranges import SENTINELS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_PROCESSES = 64
_NAME_LENGTH = 200
# The unversioned function raises a mismatch error on old drivers instead of falling back: ask for versions by name
_VERSIONS = ("_v3", "_v2")
_LARGEST_PID = 4_194_304


class ProcessList:
    """``dropped`` rows had impossible ids: drivers 535.43 to 535.98 fill the structure in another layout."""

    __slots__ = ("dropped", "rows")

    def __init__(self, rows: dict[int, int | None], dropped: int) -> None:
        self.rows = rows
        self.dropped = dropped


def running_processes(handle: object, *, root: str = "/") -> ProcessList:
    """Process ids and the GPU memory of each (None where not told).

    Raises UnavailableError: half of the list would look like a GPU with less work, or with none.
    """
    largest = max(read_number(root + "proc/sys/kernel/pid_max") or 0, _LARGEST_PID)
    rows: dict[int, int | None] = {}
    dropped = 0
    for entry in [*_listed(handle, "Compute"), *_graphics(handle)]:
        if 0 < entry.pid <= largest:
            rows[entry.pid] = _larger(rows.get(entry.pid), _memory(entry.usedGpuMemory))
        else:
            dropped += 1
    return ProcessList(rows, dropped)


def _graphics(handle: object) -> Any:
    """Empty on a driver that knows no graphics processes at all."""
    try:
        return _listed(handle, "Graphics")
    except UnavailableError as error:
        if error.reason in LASTING:
            return []
        raise


def described(processes: ProcessList, *, host_ids: bool, root: str = "/") -> dict[str, object]:
    """The sample's fields.

    Without the host's process ids no name is looked up, and an empty list is no proof that nothing runs: the driver may only
    not show it here.
    """
    if not processes.rows and not host_ids:
        return {}
    known = [memory for memory in processes.rows.values() if memory is not None]
    fields: dict[str, object] = {"process_count": len(processes.rows)}
    if len(known) == len(processes.rows):
        fields["process_memory_bytes"] = sum(known)
    largest = sorted(processes.rows.items(), key=lambda row: -(row[1] or 0))[:MOST_PROCESSES]
    if largest:
        fields["processes"] = [_row(pid, memory, host_ids, root) for pid, memory in largest]
    return fields


def _row(pid: int, memory: int | None, host_ids: bool, root: str) -> dict[str, object]:
    name = (read_text_or_none(f"{root}proc/{pid}/comm") or "").strip() if host_ids else ""
    row: dict[str, object] = {"pid": pid, "resolved": bool(name)}
    if memory is not None:
        row["memory_bytes"] = memory
    if name:
        row["name"] = name[:_NAME_LENGTH]
    user = user_of(pid, root) if name else None
    if user:
        row["user"] = user[:_NAME_LENGTH]
    return row


def _listed(handle: object, kind: str) -> Any:
    for version in _VERSIONS:
        try:
            return _asked_twice(f"nvmlDeviceGet{kind}RunningProcesses{version}", handle)
        except UnavailableError as error:
            if error.reason not in ("function_not_found", "binding_AttributeError"):
                raise
    raise UnavailableError("function_not_found")


def _asked_twice(function: str, handle: object) -> Any:
    """The list can grow between the question for its size and the question for its rows."""
    try:
        return call(function, handle)
    except UnavailableError as error:
        if error.reason != "insufficient_size":
            raise
    return call(function, handle)


def _memory(value: int | None) -> int | None:
    return None if value is None or value in SENTINELS or value >= 1 << 46 else value


def _larger(one: int | None, other: int | None) -> int | None:
    """A process with compute and graphics contexts is listed twice, each time with all its memory."""
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)
