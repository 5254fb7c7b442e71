"""Machines that are idle and that nothing stops: their policy only tells, or something stands in the way of a stop. Told, and no more.

Opened by a verdict of idle and closed by use: a verdict of unknown changes nothing. Machines without a policy are shown on the Idle page; nobody
asked to be told of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.findings import WARNING
from fleet.alerts.models import Alert
from fleet.idle.policies.covering import JudgedBy, judged_by
from fleet.idle.shutdown.barring import why_not
from fleet.idle.shutdown.models import OPEN, IdleStop
from fleet.idle.verdict.verdict import Answer
from fleet.idle.watch.models import IdleVerdictRow
from fleet.inventory.models import Instance
from fleet.inventory.prices import price_now

IDLE = "machine.idle"
# What people meant by their policy: nothing keeps a stop from happening, it was not asked for.
MEANT = frozenset({"policy", "pinned"})


def subject_of(instance_id: int) -> str:
    return f"idle:{instance_id}"


def tell_idle(verdicts: Iterable[IdleVerdictRow], judged: Mapping[int, JudgedBy], *, now: datetime) -> int:
    """How many were told of anew. One query where nothing is new."""
    known = _open_alerts()
    fresh = [verdict for verdict in verdicts if verdict.instance_id not in known]
    return sum(_tell(verdict, judged[verdict.instance_id], now) for verdict in fresh)


def clear_idle(*, now: datetime) -> int:
    """Those that are in use, off or gone, that no policy covers any more, or that a stop warns of by itself."""
    known = _open_alerts()
    if not known:
        return 0
    machines = list(Instance.objects.filter(pk__in=known).select_related("team", "account"))
    answers = dict(IdleVerdictRow.objects.filter(instance__in=known).values_list("instance", "answer"))
    stopping = set(IdleStop.objects.filter(OPEN, instance__in=known).values_list("instance", flat=True))
    judged = judged_by(machines)
    over = [
        machine
        for machine in machines
        if machine.gone_at is not None
        or machine.pk in stopping
        or judged[machine.pk].policy is None
        or answers.get(machine.pk) in {Answer.ACTIVE, Answer.OFF, None}
    ]
    for machine in over:
        clear_event(team=machine.team, cause=IDLE, subject=subject_of(machine.pk), now=now)
    return len(over)


def _tell(verdict: IdleVerdictRow, judged: JudgedBy, now: datetime) -> bool:
    """False: nobody asked for it, or it can be stopped, which has a warning of its own."""
    machine, policy = verdict.instance, judged.policy
    why = why_not(machine, judged)
    if policy is None or not why or not machine.managed:
        return False
    raise_event(
        team=machine.team,
        cause=IDLE,
        subject=subject_of(machine.pk),
        severity=WARNING,
        signal="machine_idle",
        instance=machine,
        since=verdict.quiet_since,
        price_per_hour=price_now(machine),
        currency=machine.currency,
        values={
            "policy": policy.name,
            "quiet_since": verdict.quiet_since.isoformat() if verdict.quiet_since else None,
            "because": verdict.because,
            "why_not": "" if why in MEANT else why,
        },
        now=now,
    )
    return True


def _open_alerts() -> set[int]:
    rows = Alert.objects.filter(cause=IDLE, closed_at=None, instance__isnull=False)
    return {pk for pk in rows.values_list("instance", flat=True) if pk is not None}
