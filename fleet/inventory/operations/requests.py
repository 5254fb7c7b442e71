"""The acts that people and the rooms above may ask for. Each writes an intent and returns; the driver tells the provider and proves it.

Every one raises a `Refused` where it must not be begun. None of them changes what is shown of a machine: only readings do.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from fleet.inventory.environments.carry import carried_along
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.journal import audit, note
from fleet.inventory.operations.models import Operation, OperationKind
from fleet.inventory.operations.orders import kept
from fleet.inventory.operations.permits import make_way, refuse_account, refuse_machine, refuse_twice
from fleet.inventory.operations.tasks import hurry
from fleet.inventory.plans.gate import refuse_blocked
from fleet.inventory.prices import price_now
from fleet.providers.base import CreateSpec
from fleet.providers.values import Money
from fleet.teams.audit import Actor
from fleet.teams.models import Project


def request_launch(
    *,
    actor: Actor,
    account: ProviderAccount,
    spec: CreateSpec,
    offer: Mapping[str, Any],
    project: Project | None = None,
    environment: Mapping[str, Any] | None = None,
    override_reason: str = "",
    idempotency_key: str = "",
    now: datetime | None = None,
) -> Operation:
    """Rents a machine. `offer`: what it was chosen from, JSON-ready; its `price_per_hour` and `currency` are what the wait may cost.

    `environment`: what lies on its image, by default what is known of it. `override_reason`: why an admin lets no launch block count; it is kept.
    """
    refuse_account(account, OperationKind.LAUNCH)
    price, (order, sealed) = _offered(offer, account.currency), kept(spec)
    operation = Operation(
        team_id=account.team_id,
        account=account,
        kind=OperationKind.LAUNCH,
        project=project,
        spec={
            "create": order,
            "offer": dict(offer),
            "environment": environment or carried_along(account, spec.image_id),
        },
        sealed=sealed,
        override_reason=override_reason,
        price_per_hour=price.amount if price else None,
        currency=price.currency if price else account.currency,
        state_before="",
    )
    return _begin(operation, actor=actor, key=idempotency_key, now=now)


def request_start(*, actor: Actor, instance: Instance, override_reason: str = "", **more: Any) -> Operation:
    """Launch blocks count as for a launch."""
    return _request(OperationKind.START, actor=actor, instance=instance, override_reason=override_reason, **more)


def request_stop(
    *, actor: Actor, instance: Instance, accept_loss: bool = False, override_reason: str = "", **more: Any
) -> Operation:
    """`accept_loss`: data that the stop destroys is meant to go. `override_reason`: why an admin lets no hold count; it is kept."""
    return _request(
        OperationKind.STOP,
        actor=actor,
        instance=instance,
        accept_loss=accept_loss,
        override_reason=override_reason,
        **more,
    )


def request_terminate(
    *, actor: Actor, instance: Instance, accept_loss: bool = False, override_reason: str = "", **more: Any
) -> Operation:
    """As request_stop."""
    return _request(
        OperationKind.TERMINATE,
        actor=actor,
        instance=instance,
        accept_loss=accept_loss,
        override_reason=override_reason,
        **more,
    )


def request_reboot(*, actor: Actor, instance: Instance, override_reason: str = "", **more: Any) -> Operation:
    """What runs on it ends: holds count as for a stop."""
    return _request(OperationKind.REBOOT, actor=actor, instance=instance, override_reason=override_reason, **more)


def request_save_image(*, actor: Actor, instance: Instance, name: str, **more: Any) -> Operation:
    return _request(OperationKind.SAVE_IMAGE, actor=actor, instance=instance, spec={"name": name}, **more)


def _request(
    kind: OperationKind,
    *,
    actor: Actor,
    instance: Instance,
    accept_loss: bool = False,
    override_reason: str = "",
    spec: Mapping[str, Any] | None = None,
    idempotency_key: str = "",
    now: datetime | None = None,
) -> Operation:
    now = now or timezone.now()
    with transaction.atomic():
        machine = Instance.objects.select_for_update(of=("self",)).select_related("account", "team").get(pk=instance.pk)
        if idempotency_key and (known := _known(machine.team_id, idempotency_key, kind, machine)):
            return known
        refuse_account(machine.account, kind)
        refuse_machine(machine, kind, actor=actor, accept_loss=accept_loss, override_reason=override_reason, now=now)
        make_way(machine, kind, actor=actor, now=now)
        operation = _of_machine(machine, kind)
        operation.spec, operation.override_reason = dict(spec or {}), override_reason
        return _begin(operation, actor=actor, key=idempotency_key, now=now)


def _of_machine(machine: Instance, kind: OperationKind) -> Operation:
    return Operation(
        team=machine.team,
        account=machine.account,
        instance=machine,
        project_id=machine.project_id,
        kind=kind,
        price_per_hour=price_now(machine),
        currency=machine.currency,
        state_before=machine.state,
        started_before=machine.started_at,
    )


def _known(team_id: int, key: str, kind: OperationKind, machine: Instance | None) -> Operation | None:
    """The operation that this key has begun already. Raises KeyTaken where it was for something else."""
    found = Operation.objects.filter(team=team_id, idempotency_key=key).select_related("team", "account").first()
    if found is not None:
        refuse_twice(found, kind, machine)
    return found


@transaction.atomic
def _begin(operation: Operation, *, actor: Actor, key: str, now: datetime | None) -> Operation:
    if key and (known := _known(operation.team_id, key, OperationKind(operation.kind), operation.instance)):
        return known
    operation.requested_by, operation.requested_label = actor.user, actor.label[:200]
    refuse_blocked(operation, actor=actor)
    operation.token = f"rr-{secrets.token_hex(8)}"
    operation.idempotency_key = key
    operation.requested_at = operation.next_at = now or timezone.now()
    try:
        with transaction.atomic():
            operation.save(force_insert=True)
    except IntegrityError:
        # Somebody with the same key was quicker: theirs is the one. Without a key the error is a real one.
        known = _known(operation.team_id, key, OperationKind(operation.kind), operation.instance) if key else None
        if known is None:
            raise
        return known
    note(operation, "requested", at=operation.requested_at, detail=operation.override_reason)
    reason = {"override_reason": operation.override_reason} if operation.override_reason else {}
    audit(operation, "requested", actor=actor, new=reason)
    transaction.on_commit(partial(hurry, operation.pk))
    return operation


def _offered(offer: Mapping[str, Any], currency: str) -> Money | None:
    try:
        price = Decimal(str(offer["price_per_hour"]))
    except (KeyError, InvalidOperation):
        return None
    return Money(price, str(offer.get("currency") or currency)) if price.is_finite() and price >= 0 else None
