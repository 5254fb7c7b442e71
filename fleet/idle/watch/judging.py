"""Every machine is judged once a minute, and one by itself right before it is stopped."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from msgspec import json

from fleet.idle.verdict.evidence import MachineWindow
from fleet.idle.verdict.verdict import Answer, IdleVerdict, Reason, judge, judge_parts
from fleet.idle.watch.known import Known, known_machines
from fleet.idle.watch.load import first_look, windows
from fleet.idle.watch.models import IdleVerdictRow
from fleet.inventory.models import Instance

# What a machine does, and no word of people, who may be away; without what comes with a time of its own.
_USE = frozenset({
    "utilization", "sm_activity", "tensor_activity", "dram_activity", "power", "cpu", "disk", "network", "busy_kernels",
})  # fmt: skip
# Somebody who is logged in is no more than that: what the machine did meanwhile is looked for in its window all the same.
_LOOKED_BEHIND = frozenset({"ssh_sessions"})
# Columns of Instance that are needed of ten thousand.
_COLUMNS = (
    "team_id", "account_id", "project_id", "tenancy", "labels", "provider_labels", "state", "raw_state", "rule_version", "state_since",
    "gpu_count", "started_at", "last_seen_at", "probed_at", "missed_listings", "doubted_since",
    "account__kind", "account__failures", "account__poll_interval_seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Judged:
    known: Known
    machine: MachineWindow
    verdict: IdleVerdict


def judge_all(*, now: datetime) -> int:
    """Judges every machine that is there, and forgets those that are gone. Returns how many it judged."""
    rows = Instance.objects.filter(gone_at=None).select_related("account").only(*_COLUMNS)
    with _uncollected():
        judged = judge_machines(list(rows.order_by("pk")), now=now)
        _write(judged, now=now)
    IdleVerdictRow.objects.filter(instance__gone_at__isnull=False).delete()
    return len(judged)


@contextmanager
def _uncollected() -> Iterator[None]:
    """What is made here by the hundred thousand refers to nothing in circles; to look for such circles takes a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def judge_machine(*, instance: Instance, now: datetime) -> IdleVerdict:
    """One machine by what is newest right now: its samples, its provider's last word, its holds. Written like the others' are."""
    fresh = Instance.objects.select_related("account").only(*_COLUMNS, "gone_at").get(pk=instance.pk)
    if fresh.gone_at is not None:
        return IdleVerdict(Answer.OFF, (Reason("off"),))
    [judged] = judge_machines([fresh], now=now, to_the_second=True)
    _write([judged], now=now)
    return judged.verdict


def judge_machines(
    machines: Sequence[Instance], *, now: datetime, to_the_second: bool = False, all_windows: bool = False
) -> list[Judged]:
    """In their order. `machines` come with their accounts. `all_windows`: also of those that the newest readings settle."""
    known = known_machines(machines, now=now)
    found = [_judged(one, first_look(one, now=now)) for one in known]
    places = [place for place, one in enumerate(found) if all_windows or to_the_second or not _is_settled(one)]
    asked = [known[place] for place in places]
    for place, machine in zip(places, windows(asked, now=now, to_the_second=to_the_second), strict=True):
        found[place] = _judged(known[place], machine)
    return found


def _judged(known: Known, machine: MachineWindow) -> Judged:
    return Judged(known, machine, judge(machine, known.limits))


def _is_settled(first: Judged) -> bool:
    """The best that the window could say changes nothing of the answer. Only the window tells what works from what is stalled."""
    if first.verdict.answer is Answer.IDLE or set(first.verdict.codes) <= _LOOKED_BEHIND:
        return False
    return not (first.verdict.answer is Answer.ACTIVE and _may_be_stalled(first))


def _may_be_stalled(first: Judged) -> bool:
    limits = first.known.limits
    return any(
        (gpu.utilization_percent or 0.0) >= limits.stalled_percent
        and gpu.power_watts is not None
        and gpu.power_watts < (gpu.power_limit_watts or 0.0) * limits.stalled_power_ratio
        for gpu in first.machine.gpus
    )


# Not moved back by a worker that began earlier. As one text: arrays of so many moments and texts take longer to write than all of the judging.
_UPSERT = """\
INSERT INTO idle_verdict AS kept (instance_id, answer, because, parts, quiet_since, since, judged_at, active_at, ssh_sessions, mode, window_minutes, policy_id)
SELECT told.instance_id, told.answer, told.because, told.parts, told.quiet_since, told.judged_at, told.judged_at, told.active_at, told.ssh_sessions,
    told.mode, told.window_minutes, policy.id
FROM jsonb_to_recordset(%s::jsonb) AS told(instance_id bigint, answer text, because jsonb, parts jsonb, quiet_since timestamptz, judged_at timestamptz,
    active_at timestamptz, ssh_sessions int, mode text, window_minutes int, policy_id bigint)
JOIN fleet_instance machine ON machine.id = told.instance_id
LEFT JOIN idle_policy policy ON policy.id = told.policy_id ORDER BY told.instance_id
ON CONFLICT (instance_id) DO UPDATE SET answer = excluded.answer, because = excluded.because, parts = excluded.parts,
    quiet_since = CASE WHEN kept.answer = excluded.answer THEN least(kept.quiet_since, excluded.quiet_since) ELSE excluded.quiet_since END,
    since = CASE WHEN kept.answer = excluded.answer THEN kept.since ELSE excluded.since END,
    judged_at = excluded.judged_at, active_at = greatest(kept.active_at, excluded.active_at), ssh_sessions = excluded.ssh_sessions,
    mode = excluded.mode, window_minutes = excluded.window_minutes, policy_id = excluded.policy_id
WHERE kept.judged_at <= excluded.judged_at
"""


def _write(judged: Sequence[Judged], *, now: datetime) -> None:
    """One statement. A machine or policy that is deleted meanwhile is left out."""
    if not judged:
        return
    with connection.cursor() as cursor:
        cursor.execute(_UPSERT, [json.encode([_row(one, now) for one in judged]).decode()])


def _row(one: Judged, now: datetime) -> dict[str, Any]:
    known, verdict = one.known, one.verdict
    parts = judge_parts(one.machine, known.limits) if known.owners else {}
    return {
        "instance_id": known.instance.pk,
        "answer": verdict.answer.value,
        "because": plain(verdict.because),
        "parts": {
            owner: {"answer": part.answer.value, "because": plain(part.because)} for owner, part in parts.items()
        },
        "quiet_since": verdict.quiet_since,
        "judged_at": now,
        "active_at": now if _shows_use(verdict) else one.machine.active_at,
        "ssh_sessions": known.host.ssh_sessions if known.host else None,
        "mode": known.by.mode.value,
        "window_minutes": round(known.by.window.total_seconds() / 60),
        "policy_id": known.by.policy.pk if known.by.policy else None,
    }


def _shows_use(verdict: IdleVerdict) -> bool:
    return verdict.answer is Answer.ACTIVE and not _USE.isdisjoint(verdict.codes)


def plain(because: Iterable[Reason]) -> list[dict[str, Any]]:
    """JSON-ready, as rows keep it."""
    return [
        {"code": reason.code, "subject": reason.subject, "value": _plain(reason.value), "limit": _plain(reason.limit)}
        for reason in because
    ]


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value
