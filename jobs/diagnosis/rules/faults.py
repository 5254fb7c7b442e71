"""What happened to the machine under the run: a fault of a GPU, a machine that was taken away, neighbours. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.diagnosis.evidence import Evidence
from jobs.diagnosis.finding import Finding, Reason, Remedy, Sure

# NVIDIA's own list: those that a program causes itself, and those that only the hardware or the driver can.
APPLICATION = frozenset({13, 31, 43, 45, 68, 69})
NEIGHBOURS = 50


def look(evidence: Evidence) -> Iterator[Finding]:
    yield from _faults(evidence)
    yield from _preempted(evidence)
    if evidence.neighbour_score is not None and evidence.neighbour_score >= NEIGHBOURS:
        because = (Reason("neighbour_score", {"score": evidence.neighbour_score}),)
        yield Finding("noisy_neighbour", Sure.POSSIBLE, because, (Remedy("other_machine"), Remedy("exclusive_machine")))


def _faults(evidence: Evidence) -> Iterator[Finding]:
    of_run = [event for event in evidence.events if evidence.started_at is None or event.at >= evidence.started_at]
    lost = [event for event in of_run if event.kind == "gpu_lost"]
    hard = [
        event for event in of_run if event.kind == "xid" and event.code is not None and event.code not in APPLICATION
    ]
    soft = [event for event in of_run if event.kind == "xid" and event.code in APPLICATION]
    if lost or hard:
        worst = (lost or hard)[0]
        because = (Reason("gpu_lost" if lost else "xid", {} if worst.code is None else {"code": worst.code}),)
        remedies = (Remedy("other_machine"), Remedy("resume"), Remedy("tell_provider"))
        gpus = tuple(sorted({event.gpu for event in (*lost, *hard) if event.gpu is not None}))
        yield Finding("gpu_fault", Sure.CERTAIN, because, remedies, gpus=gpus, since=worst.at)
    elif soft:
        because = (Reason("xid", {"code": soft[0].code or 0}),)
        gpus = tuple(sorted({event.gpu for event in soft if event.gpu is not None}))
        yield Finding(
            "gpu_program",
            Sure.LIKELY,
            because,
            (Remedy("look_at_log"), Remedy("blocking_launches")),
            gpus=gpus,
            since=soft[0].at,
        )


def _preempted(evidence: Evidence) -> Iterator[Finding]:
    """The machine ended before the run did."""
    if evidence.machine_ended_at is None or evidence.exit_code is not None:
        return
    code = "preempted" if evidence.spot else "machine_ended"
    remedies = ("resume", "checkpoint_often", "on_demand") if evidence.spot else ("resume", "look_at_provider")
    yield Finding(
        code,
        Sure.CERTAIN,
        (Reason("machine_ended"),),
        tuple(Remedy(one) for one in remedies),
        since=evidence.machine_ended_at,
    )
