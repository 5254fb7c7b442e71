"""Whether a machine is what a plan needs: its facts against what was planned and the planner's tables. Pure; what nobody knows is no remark.

Without a plan nothing is refused: nobody knows what the command needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from jobs.plans.facts import MachineFacts
from planner.catalogue.gpus import Gpu
from planner.compatibility.fit import Known, fit
from planner.compatibility.machine import SMALL_SHARED_MEMORY_BYTES
from planner.compatibility.stacks import Finding
from planner.reasons import Reason

# refused: it cannot work; warning: it may go wrong; note: worth knowing.
Level = Literal["refused", "warning", "note"]
_LEVELS: Mapping[str, Level] = {"refused": "refused", "ptx-risk": "warning", "minor": "note"}
# A card that is used by less shows a desktop or a driver's own memory.
IN_USE_SHARE = 0.03
# Below it the first checkpoint or download fails.
LEAST_DISK_BYTES = 2 * 1024**3


@dataclass(frozen=True, slots=True)
class Remark:
    """`code` of jobs.plans.words, or "stack" with a reason of the planner and perhaps its fix: {"reason": [key, values], "fix": …}."""

    code: str
    level: Level
    values: Mapping[str, Any] = field(default_factory=dict)

    def written(self) -> dict[str, Any]:
        return {"code": self.code, "level": self.level, "values": dict(self.values)}


def judge(facts: MachineFacts, predicted: Mapping[str, Any], *, gpu: Gpu | None, installs: bool) -> tuple[Remark, ...]:
    """The worst first. `predicted`: Job.predicted, {} without a plan; `gpu`: the tables' row of what the machine has; `installs`: its software is yet to come."""
    remarks = [*_stack(facts, predicted, gpu, installs=installs), *_disk(facts, predicted)]
    if predicted.get("gpu"):
        remarks += [
            *_cards(facts, predicted, gpu),
            *_memory(facts, predicted),
            *_packages(facts, predicted, installs=installs),
        ]
    else:
        remarks = [replace(each, level="warning") if each.level == "refused" else each for each in remarks]
    return tuple(sorted(remarks, key=lambda each: ("refused", "warning", "note").index(each.level)))


def is_refused(remarks: Sequence[Remark]) -> bool:
    return any(each.level == "refused" for each in remarks)


def _cards(facts: MachineFacts, predicted: Mapping[str, Any], gpu: Gpu | None) -> Iterator[Remark]:
    wanted = int(predicted.get("gpus_per_machine") or 1)
    if not facts.gpus:
        yield Remark("no_gpu", "refused", {"gpu": predicted.get("gpu_name", "")})
        return
    if len(facts.gpus) < wanted:
        yield Remark("fewer_gpus", "refused", {"found": len(facts.gpus), "wanted": wanted})
    if gpu is None or gpu.id != predicted["gpu"]:
        yield Remark("other_gpu", "warning", {"found": facts.gpus[0].name, "gpu": predicted.get("gpu_name", "")})
    shared = facts.shared_memory_bytes
    if wanted > 1 and shared is not None and shared <= SMALL_SHARED_MEMORY_BYTES:
        yield Remark("shared_memory", "refused", {"bytes": shared})
    yield from _card_memory(facts, predicted)


def _card_memory(facts: MachineFacts, predicted: Mapping[str, Any]) -> Iterator[Remark]:
    """Of the cards that it would take: the first ones."""
    needed = predicted.get("memory_bytes")
    for index, card in enumerate((facts.gpus or ())[: int(predicted.get("gpus_per_machine") or 1)]):
        if card.memory_bytes is None:
            continue
        free = card.memory_bytes - (card.used_bytes or 0)
        if needed and card.memory_bytes < needed:
            yield Remark("gpu_memory", "refused", {"index": index, "bytes": card.memory_bytes, "needed": needed})
        elif (card.used_bytes or 0) > IN_USE_SHARE * card.memory_bytes:
            short = needed is not None and free < needed
            values = {"index": index, "bytes": card.used_bytes, "free": free}
            yield Remark("gpu_in_use", "refused" if short else "warning", values)


def _memory(facts: MachineFacts, predicted: Mapping[str, Any]) -> Iterator[Remark]:
    """The planner's minimum is a rule of thumb: less is no refusal."""
    host = predicted.get("host") or {}
    if (needed := _least(host, "memory")) and facts.memory_bytes is not None and facts.memory_bytes < needed:
        yield Remark("memory", "warning", {"bytes": facts.memory_bytes, "needed": needed})
    if (needed := _least(host, "vcpus")) and facts.cpus is not None and facts.cpus < needed:
        yield Remark("cpus", "note", {"found": facts.cpus, "wanted": int(needed)})


def _disk(facts: MachineFacts, predicted: Mapping[str, Any]) -> Iterator[Remark]:
    free = facts.disk_free_bytes
    if free is None:
        return
    needed = _least(predicted.get("host") or {}, "data_disk")
    if free < LEAST_DISK_BYTES:
        yield Remark("disk_full", "refused", {"bytes": free})
    elif needed and free < needed:
        yield Remark("disk", "warning", {"bytes": free, "needed": needed})


def _packages(facts: MachineFacts, predicted: Mapping[str, Any], *, installs: bool) -> Iterator[Remark]:
    if installs:
        return
    software = predicted.get("software") or {}
    needed = [
        *(["torch"] if software.get("torch") else []),
        *software.get("frameworks", {}),
        *software.get("packages", ()),
    ]
    found = {*facts.packages, *(["torch"] if facts.torch else [])}
    if missing := [name for name in dict.fromkeys(needed) if name not in found]:
        yield Remark("missing_packages", "refused", {"names": ", ".join(missing)})


def _stack(facts: MachineFacts, predicted: Mapping[str, Any], gpu: Gpu | None, *, installs: bool) -> Iterator[Remark]:
    """What lies there, or what the install script will bring, against driver and GPU."""
    software = predicted.get("software") or {}
    known = _planned(software, facts) if installs else _found(facts)
    if gpu is None or not known.torch:
        return
    for finding in fit(gpu, facts.driver, known, gpus=len(facts.gpus or ()) or 1).findings:
        if finding.level in _LEVELS:
            yield Remark("stack", _LEVELS[finding.level], _said(finding))


def _planned(software: Mapping[str, Any], facts: MachineFacts) -> Known:
    tag = software.get("cuda_tag")
    torch = f"{software['torch']}+{tag}" if software.get("torch") and tag else software.get("torch") or ""
    return Known(torch, "", facts.python, tuple(software.get("frameworks", {}).items()))


def _found(facts: MachineFacts) -> Known:
    """A build for the CPU, whatever its version says."""
    torch = facts.torch.partition("+")[0] + "+cpu" if facts.torch and facts.torch_cuda == "none" else facts.torch
    return Known(torch, facts.nvcc, facts.python, tuple(facts.packages.items()))


def _said(finding: Finding) -> dict[str, Any]:
    return {"reason": _written(finding.reason), **({"fix": _written(finding.fix)} if finding.fix else {})}


def _written(said: Reason) -> list[Any]:
    return [
        said.key,
        {name: value if isinstance(value, int | float) else str(value) for name, value in said.values.items()},
    ]


def _least(host: Mapping[str, Any], key: str) -> float | None:
    """The planner's minimum of a need of the machine."""
    least = (host.get(key) or [None])[0]
    return float(least) if isinstance(least, int | float) else None
