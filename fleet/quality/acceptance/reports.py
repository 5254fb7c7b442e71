"""From an action that ended to a report: what was promised, what machines of the kind reached, the verdict, and who hears of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.findings import NOTE, WARNING, instance_subject
from fleet.inventory.models import Instance
from fleet.quality.acceptance.figures import Promised, Reference, Result
from fleet.quality.acceptance.judge import COMPARED, judge, rate_of
from fleet.quality.acceptance.measured import Measured
from fleet.quality.acceptance.reference import reference_of
from fleet.quality.models import AcceptanceReport, AcceptanceVerdict
from fleet.telemetry.actions.models import AgentAction, AgentActionName, AgentActionState
from fleet.telemetry.models import HostLatest

CAUSE, SIGNAL = "gpu.not_as_rented", "acceptance"
# Machines of the kind: fewer prove nothing. Old ones may have been another generation of the same type.
LEAST_PEERS, MOST_PEERS = 3, 50
PEERS_WITHIN = timedelta(days=180)
SEVERITIES = {AcceptanceVerdict.NOT_AS_RENTED: WARNING, AcceptanceVerdict.SHORT: NOTE}


def judge_ended(*, now: datetime) -> int:
    """Write the reports that are missing. Idempotent; returns how many were written."""
    judged = AcceptanceReport.objects.filter(action=OuterRef("pk"))
    waiting = AgentAction.objects.filter(
        ~Exists(judged), name=AgentActionName.ACCEPT, state=AgentActionState.DONE
    ).values_list("pk", flat=True)
    return sum(write_report(action_id=pk, now=now) is not None for pk in waiting.order_by("pk")[:100])


@transaction.atomic
def write_report(*, action_id: int, now: datetime) -> AcceptanceReport | None:
    """None where it is written already, or there is nothing to judge. Two who write at once wait for each other at the action."""
    action = (
        AgentAction.objects.select_for_update(of=("self",))
        .select_related("instance__team", "instance__account")
        .filter(pk=action_id, state=AgentActionState.DONE)
        .first()
    )
    if action is None or AcceptanceReport.objects.filter(action=action).exists():
        return None
    machine = action.instance
    found = _with_disks(action.result, machine)
    promised = promised_of(machine)
    told = judge(promised, Measured(found), _reference(machine, now))
    report = AcceptanceReport.objects.create(
        instance=machine,
        action=action,
        at=action.ended_at or now,
        verdict=told.verdict,
        checks=[check.as_json() for check in told.checks],
        promised={name: getattr(promised, name) for name in Promised.__dataclass_fields__},
        measured=found,
    )
    _tell(machine, report, now)
    return report


def promised_of(machine: Instance) -> Promised:
    return Promised(
        gpu_model=machine.gpu_model,
        gpu_count=machine.gpu_count,
        gpu_memory_mib=machine.gpu_memory_mib,
        vcpus=machine.vcpus,
        ram_mib=machine.ram_mib,
        disk_gb=machine.disk_gb,
    )


def _with_disks(result: Mapping[str, Any], machine: Instance) -> dict[str, Any]:
    """With the largest file system that the agent reports on: it need not be one that it may write to."""
    latest = HostLatest.objects.filter(instance=machine).first()
    disk = result.get("disk")
    if latest is None or not isinstance(disk, dict):
        return dict(result)
    listed = (row.get("total_bytes") for row in latest.detail.get("filesystems") or () if isinstance(row, dict))
    sizes = [size for size in (*listed, latest.filesystem_total_bytes) if isinstance(size, int)]
    return {**result, "disk": {**disk, "largest_bytes": max(sizes)}} if sizes else dict(result)


def _reference(machine: Instance, now: datetime) -> Reference:
    card = reference_of(machine.gpu_model, memory_mib=machine.gpu_memory_mib)
    return Reference(
        pcie_generation=card.pcie_generation,
        pcie_width=card.pcie_width,
        matrix_flops_per_second=card.matrix_flops_per_second,
        peers=_peers(machine, now),
    )


def _peers(machine: Instance, now: datetime) -> dict[str, float]:
    """Medians of the newest test of each of the team's other machines of the same provider and GPU."""
    if not machine.gpu_model:
        return {}
    rows = (
        AcceptanceReport.objects.filter(
            instance__team=machine.team,
            instance__account__kind=machine.account.kind,
            instance__gpu_model=machine.gpu_model,
            at__gte=now - PEERS_WITHIN,
        )
        .exclude(instance=machine)
        .order_by("instance_id", "-at")
        .distinct("instance_id")
    )
    return medians(Measured(row.measured) for row in rows[:MOST_PEERS])


def medians(others: Iterable[Measured]) -> dict[str, float]:
    known = list(others)
    found = {name: [rate for one in known if (rate := rate_of(one, name)) is not None] for name in COMPARED}
    return {name: median(rates) for name, rates in found.items() if len(rates) >= LEAST_PEERS}


def _tell(machine: Instance, report: AcceptanceReport, now: datetime) -> None:
    severity = SEVERITIES.get(AcceptanceVerdict(report.verdict))
    subject = instance_subject(machine.pk)
    if severity is None:
        # A test that could not measure says nothing against what one said before.
        if report.verdict == AcceptanceVerdict.PASS:
            clear_event(team=machine.team, cause=CAUSE, subject=subject, now=now, signal=SIGNAL)
        return
    bad = [check for check in report.checks if check["result"] in (Result.WRONG, Result.SHORT)]
    raise_event(
        team=machine.team,
        cause=CAUSE,
        subject=subject,
        severity=severity,
        now=now,
        instance=machine,
        values={"checks": bad[:3], "more": max(0, len(bad) - 3), "verdict": report.verdict},
        signal=SIGNAL,
        since=report.at,
    )
