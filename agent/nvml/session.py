"""All GPUs of the machine in one NVML session: finding them, reading them apart, and noticing what changed."""

from __future__ import annotations

import time

from agent.nvml.calls import UnavailableError, call, call_text
from agent.nvml.device import GpuReader, LostError, Place
from agent.nvml.inventory import Found, Identity, find_devices
from agent.nvml.xids import XidQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    Event = dict[str, object]

# Handles go stale when a GPU is reset or MIG is cut anew: look again, and at once when one was lost
_LOOK_AGAIN_SECONDS = 60.0


class Session:
    """Between ``nvmlInit`` and ``nvmlShutdown``. GPUs are known by UUID; indices and handles change."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._readers: dict[str, GpuReader] = {}
        self._known: dict[str, Identity] = {}
        self._lost: set[str] = set()
        self._xids = XidQueue()
        self._registered: set[str] = set()
        self._look_at = 0.0
        self._turn = 0
        self._expected: int | None = None
        self._edges: set[tuple[str, str]] = set()
        self._ecc: dict[str, float] = {}
        self.inventory: list[dict[str, object]] = []
        self.detail = ""

    def sample(self, now: float) -> dict[str, object]:
        """``at``, ``gpus``, ``events``, and ``inventory`` when it changed. Raises UnavailableError when nothing can be told.

        ``now`` is on the monotonic clock.
        """
        message: dict[str, object] = {"at": time.time()}
        events: list[Event] = []
        if now >= self._look_at:
            before = self.inventory
            self._look(now, events)
            if self.inventory != before:
                message["inventory"] = self.inventory
        self._note_xids(events)
        watched = self._next_to_watch()
        gpus = [
            self._read(uuid, now, events, watch_pcie=uuid == watched) for uuid in sorted(self._known, key=self._order)
        ]
        return {**message, "gpus": gpus, "events": events, "detail": self.detail}

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()
        self._xids.close()

    def _look(self, now: float, events: list[Event]) -> None:
        """Find GPUs again; keep those that vanished in mind as lost, unless they were MIG instances that somebody removed."""
        self._look_at = now + _LOOK_AGAIN_SECONDS
        found = find_devices()
        self._note_count(found, events)
        identities = {identity.uuid: identity for _, identity in found.devices}
        for uuid in [uuid for uuid in self._readers if uuid not in identities]:
            self._readers.pop(uuid).close()
        self._known = {uuid: old for uuid, old in self._known.items() if old.mig_parent is None} | identities
        for handle, identity in found.devices:
            self._adopt(handle, identity)
        if set(identities) != self._registered:
            # What the old set still holds is taken out first: registering anew throws it away
            self._note_xids(events)
            self._xids.register(found.devices)
            self._registered = set(identities)
        self.inventory = [self._known[uuid].row() for uuid in sorted(self._known, key=self._order)]
        self.detail = _described(found)

    def _adopt(self, handle: object, identity: Identity) -> None:
        reader = self._readers.get(identity.uuid)
        if reader is None:
            self._readers[identity.uuid] = GpuReader(handle, identity, self._place)
        else:
            reader.handle, reader.identity = handle, identity

    def _next_to_watch(self) -> str:
        """One GPU a sample, in turn: with eight of them the blocking PCIe call would else take a third of a second."""
        candidates = [uuid for uuid, reader in self._readers.items() if reader.lacks_pcie_rates]
        self._turn += 1
        return candidates[self._turn % len(candidates)] if candidates else ""

    def _read(self, uuid: str, now: float, events: list[Event], *, watch_pcie: bool) -> dict[str, object]:
        reader = self._readers.get(uuid)
        try:
            sample = reader.read(now, watch_pcie=watch_pcie) if reader is not None else None
        except LostError:
            sample = None
        if reader is None or sample is None:
            self._note_lost(uuid, events)
            return {"uuid": uuid, "state": "lost"}
        if uuid in self._lost:
            self._lost.discard(uuid)
            events.append(_event("gpu_back", uuid))
        self._note_health(uuid, reader, sample, events)
        return sample

    def _note_lost(self, uuid: str, events: list[Event]) -> None:
        self._look_at = 0.0
        reader = self._readers.pop(uuid, None)
        if reader is not None:
            reader.close()
        if uuid not in self._lost:
            self._lost.add(uuid)
            events.append(_event("gpu_lost", uuid, detail="the driver no longer reaches this GPU"))

    def _note_xids(self, events: list[Event]) -> None:
        for uuid, code in self._xids.drain():
            events.append(_event("xid", uuid, code=code))
            if uuid in self._readers:
                self._readers[uuid].restart_activity()

    def _note_count(self, found: Found, events: list[Event]) -> None:
        physical = sum(1 for _, identity in found.devices if identity.mig_parent is None)
        if self._expected is not None and found.expected != self._expected:
            events.append(
                _event(
                    "gpu_count_changed", "", detail=f"the driver counts {found.expected} GPUs, before {self._expected}"
                )
            )
        elif physical < found.expected and self._edge("unreadable", "", active=True):
            events.append(_event("gpu_count_changed", "", detail=_described(found)))
        if physical >= found.expected:
            self._edge("unreadable", "", active=False)
        self._expected = found.expected

    def _note_health(self, uuid: str, reader: GpuReader, sample: dict[str, object], events: list[Event]) -> None:
        """Events on the edge only: a row that stays failed is told once."""
        if self._edge("reset_required", uuid, active=reader.reset_required):
            events.append(_event("reset_required", uuid))
        if self._edge("row_remap_failure", uuid, active=sample.get("remapped_rows_failed") is True):
            events.append(_event("row_remap_failure", uuid))
        if self._edge("process_list_unreliable", uuid, active=reader.dropped_processes > 0):
            detail = f"{reader.dropped_processes} rows with impossible process ids: this driver fills the list in another layout"
            events.append(_event("process_list_unreliable", uuid, detail=detail))
        errors = sample.get("ecc_uncorrected")
        if isinstance(errors, (int, float)):
            # Those from before this process began are in the figure; an event is what happens while it runs
            if errors > self._ecc.get(uuid, errors):
                events.append(_event("ecc_uncorrected", uuid, code=int(errors)))
            self._ecc[uuid] = errors

    def _edge(self, kind: str, uuid: str, *, active: bool) -> bool:
        """True when ``kind`` begins to hold for this GPU."""
        begins = active and (kind, uuid) not in self._edges
        (self._edges.add if active else self._edges.discard)((kind, uuid))
        return begins

    def _order(self, uuid: str) -> tuple[int, str, str]:
        identity = self._known[uuid]
        return (identity.index, "" if identity.mig_parent is None else identity.mig_parent, uuid)


def driver_facts() -> dict[str, object]:
    """Versions for the environment; those that cannot be read are left out."""
    facts: dict[str, object] = {}
    for field, function in (("driver", "nvmlSystemGetDriverVersion"), ("nvml", "nvmlSystemGetNVMLVersion")):
        try:
            facts[field] = call_text(function)
        except UnavailableError:
            continue
    try:
        version = call("nvmlSystemGetCudaDriverVersion_v2")
    except UnavailableError:
        return facts
    return {**facts, "cuda_driver": f"{version // 1000}.{version % 1000 // 10}"}


def _event(kind: str, uuid: str, *, code: int | None = None, detail: str = "") -> Event:
    event: Event = {"at": time.time(), "kind": kind}
    if uuid:
        event["gpu"] = uuid
    if code is not None:
        event["code"] = code
    if detail:
        event["detail"] = detail[:200]
    return event


def _described(found: Found) -> str:
    said = []
    if found.unreadable:
        reasons = ", ".join(f"index {index}: {reason}" for index, reason in sorted(found.unreadable.items()))
        said.append(f"{len(found.unreadable)} of {found.expected} GPUs cannot be read ({reasons})")
    if found.suspect_text:
        said.append("this driver returns unreadable text: its other values may be wrong as well")
    return "; ".join(said)[:200]
