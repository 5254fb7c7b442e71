"""What a rule is: a kind with its thresholds, and a function that judges a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from fleet.alerts.findings import Finding, instance_subject
from fleet.alerts.snapshot import Gpu, Machine, Snapshot

Limits = Mapping[str, float]
Evaluate = Callable[[Snapshot, Limits, datetime], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Threshold:
    """One number that a team may set, in [low, high]. `unit`: percent, celsius, seconds, minutes, hours, count, ratio."""

    name: str
    default: float
    low: float
    high: float
    unit: str

    @property
    def is_whole(self) -> bool:
        """Of what is counted there are no halves."""
        return self.unit == "count"


@dataclass(frozen=True, slots=True)
class RuleKind:
    """`evaluate` yields what fires and what the evidence does not settle; what it leaves out is over.

    for_seconds: how long it has to fire before it opens a signal; clear_seconds: how long the evidence that it is over has to last.
    history: where a preview looks ("gpu", "host", "events", "observations"; "" = nothing of it is kept).
    """

    kind: str
    cause: str
    severity: str
    evaluate: Evaluate
    thresholds: tuple[Threshold, ...] = ()
    for_seconds: int = 0
    clear_seconds: int = 60
    history: str = ""

    def limits(self, own: Mapping[str, float] | None = None) -> dict[str, float]:
        """The defaults, with what a team set of its own. Names that the rule does not have are left out."""
        own = own or {}
        return {threshold.name: float(own.get(threshold.name, threshold.default)) for threshold in self.thresholds}


# What a judge says of one GPU: None = it is over, else severity and values; KEEPS = not settled.
Judged = tuple[str, dict[str, Any]] | None
KEEPS: Judged = ("", {})
Judge = Callable[[Machine, Gpu], Judged]


def machine_finding(machine: Machine, kind: str, cause: str, severity: str, **more: Any) -> Finding:
    return Finding(
        cause=cause,
        subject=instance_subject(machine.pk),
        kind=kind,
        severity=severity,
        instance_id=machine.pk,
        account_id=machine.account_id,
        price_per_hour=machine.price_per_hour,
        currency=machine.currency,
        **more,
    )


def gpu_finding(machine: Machine, gpu: Gpu, kind: str, cause: str, severity: str, **more: Any) -> Finding:
    """The GPU's own part of the machine's price is at stake."""
    values = {"gpu": gpu.index, **more.pop("values", {})}
    detail = more.pop("detail", f"gpu:{gpu.pk}")
    return Finding(
        cause=cause,
        subject=instance_subject(machine.pk),
        kind=kind,
        severity=severity,
        detail=detail,
        instance_id=machine.pk,
        account_id=machine.account_id,
        scope=f"gpu:{gpu.index}",
        price_per_hour=machine.price_per_gpu,
        currency=machine.currency,
        values=values,
        **more,
    )


def each_gpu(snapshot: Snapshot, kind: str, cause: str, judge: Judge) -> Iterable[Finding]:
    """One finding a GPU that `judge` finds something of. A GPU without fresh readings is not judged: what is open of it stays open."""
    open_parts = snapshot.open_parts(cause, kind)
    for machine in snapshot.machines:
        if machine.powered is False:
            continue
        for gpu in machine.gpus:
            judged = judge(machine, gpu) if gpu.fresh else KEEPS
            if judged is None:
                continue
            severity, values = judged
            if severity:
                yield gpu_finding(machine, gpu, kind, cause, severity, values=values)
            elif open_parts and (machine.subject, f"gpu:{gpu.pk}") in open_parts:
                yield gpu_finding(machine, gpu, kind, cause, "note", keeps=True)


def fires(value: float, raises: float, clears: float, *, is_open: bool) -> bool:
    """Hysteresis: what is open stays open until the value is under the level that clears."""
    return value >= (clears if is_open else raises)
