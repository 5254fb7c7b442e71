"""What turns up later: the machine of a launch that was given up for lost, and a machine that came back after its end was proved."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q

from fleet.inventory.models import Instance
from fleet.inventory.operations.journal import audit, note
from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationKind, OperationState
from fleet.inventory.operations.orders import FORGOTTEN
from fleet.inventory.operations.proof import CLOCKS_DIFFER
from fleet.inventory.operations.sending import adopt
from fleet.providers.base import Billing, InstanceState

# A launch whose machine has not turned up by then has none.
LOOKED_FOR = timedelta(days=30)
# Nobody revives what was terminated, so that it is ended again whenever it comes back. What was stopped, somebody may start elsewhere:
# only what comes back at once did not stay stopped.
ENDED_FOR_GOOD = timedelta(days=30)
STAYS_STOPPED = timedelta(minutes=10)


def sweep(*, now: datetime) -> int:
    """How many operations it found something of."""
    return adopt_lost(now=now) + reopen_returned(now=now)


def adopt_lost(*, now: datetime) -> int:
    """Machines in the list that bear the token of a launch without one, whatever its state: an error may have been answered, and a machine made."""
    lost = Operation.objects.filter(kind=OperationKind.LAUNCH, instance=None, requested_at__gt=now - LOOKED_FOR)
    launches = list(lost.select_related("account", "team"))
    if not launches:
        return 0
    since = min(launch.requested_at for launch in launches) - CLOCKS_DIFFER
    fresh = Instance.objects.filter(account__in={launch.account_id for launch in launches}, first_seen_at__gte=since)
    rows = list(fresh.only("pk", "account_id", "name", "provider_labels", "extra"))
    pairs = [(launch, row) for launch in launches if (row := bearer(launch, rows))]
    return sum(attach(launch, row, now=now) for launch, row in pairs)


def bearer(launch: Operation, rows: Iterable[Instance]) -> Instance | None:
    return next((row for row in rows if row.account_id == launch.account_id and launch.token in shown(row)), None)


def shown(row: Instance) -> str:
    """Where providers show a token again, in one text."""
    return "\n".join((row.name, *map(str, row.provider_labels.values()), str(row.extra.get("client_token", ""))))


@transaction.atomic
def attach(launch: Operation, row: Instance, *, now: datetime) -> bool:
    machine = Instance.objects.select_for_update(of=("self",)).get(pk=row.pk)
    if Operation.objects.filter(instance=machine, state__in=OPEN_STATES).exists():
        # Somebody acts on it already: the launch is told of its machine when that is over.
        return False
    was_failed = launch.state == OperationState.FAILED
    values = {
        "instance": machine,
        "result_id": machine.external_id,
        "result_region": machine.region,
        "uncertain": False,
        **FORGOTTEN,
    }
    if not reopened(launch, now=now, **values):
        return False
    adopt(launch, machine)
    note(launch, "found", at=now, detail=machine.external_id)
    if was_failed:
        audit(launch, "reopened", new={"reason": launch.error_kind})
    return True


def reopened(operation: Operation, *, now: datetime, **values: object) -> bool:
    """Back to verifying, whoever has it in hand. False: it changed meanwhile."""
    values |= {
        "state": OperationState.VERIFYING,
        "proved_at": None,
        "failed_at": None,
        "proof": "",
        "next_at": now,
        "claimed_until": None,
        "absent_reads": 0,
        "absent_since": None,
    }
    if not Operation.objects.filter(pk=operation.pk, state=operation.state).update(**values):
        return False
    for name, value in values.items():
        setattr(operation, name, value)
    return True


def reopen_returned(*, now: datetime) -> int:
    """Proved ends whose machine a later reading shows there again: they are proved anew, and sent anew where that takes it."""
    later = Operation.objects.filter(instance=OuterRef("instance"), requested_at__gt=OuterRef("requested_at"))
    back = Operation.objects.filter(came_back(now), ~Exists(later), state=OperationState.PROVED)
    seen_since = back.filter(instance__last_seen_at__gt=F("proved_at"), account__disconnected_at=None)
    return sum(reopen(operation, now=now) for operation in seen_since.select_related("team", "instance"))


RUNS = Q(instance__state=InstanceState.RUNNING, instance__billing=Billing.FULL)
# It never was: what was stopped is in the list, so that a list was wrong.
GONE_STOP = Q(kind=OperationKind.STOP, proof="gone")


def came_back(now: datetime) -> Q:
    ended = Q(proved_at__gt=now - ENDED_FOR_GOOD, instance__gone_at=None)
    ended &= Q(kind=OperationKind.TERMINATE) | Q(GONE_STOP, RUNS)
    return ended | (Q(kind=OperationKind.STOP, instance__last_seen_at__lt=F("proved_at") + STAYS_STOPPED) & RUNS)


@transaction.atomic
def reopen(operation: Operation, *, now: datetime) -> bool:
    # Locked before the operation, as everywhere.
    Instance.objects.select_for_update(of=("self",)).filter(operations=operation).first()
    if not reopened(operation, now=now):
        return False
    note(operation, "reopened", at=now)
    audit(operation, "reopened")
    return True
