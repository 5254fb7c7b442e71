"""One machine that was read by itself, to prove an operation: written the way a listing would write it."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction

from fleet.inventory.listing import fields_of, image_text, text
from fleet.inventory.models import Image, Instance, ProviderAccount
from fleet.inventory.observe import observation_of, observe
from fleet.inventory.reconcile import Changes, compare, snapshot, write
from fleet.inventory.words import UNLISTED
from fleet.providers.base import Billing, InstanceState, ProviderInstance, Ref


@transaction.atomic
def apply_reading(
    *, instance: Instance, machine: ProviderInstance, rule_version: int, now: datetime
) -> Instance | None:
    """`now`: when the reading began. None, and nothing written: a later one is known, or its account was disconnected."""
    locked = locked_instance(instance)
    if locked is None or is_older(locked, now):
        return None
    values = fields_of(machine, default_currency=locked.account.currency)
    values |= {"rule_version": rule_version, "image": _image(locked, machine)}
    changes, known = Changes(), [locked]
    if locked.is_unseen:
        _first(changes, locked, values, now)
    else:
        compare(changes, locked, values, now)
    write(changes, account=locked.account, known=known, now=now)
    Instance.objects.filter(pk=locked.pk).update(probed_at=now)
    locked.probed_at = locked.last_seen_at = now
    return locked


@transaction.atomic
def apply_absence(*, instance: Instance, now: datetime, reason: str = UNLISTED) -> Instance | None:
    """Complete readings, several in a row, did not name it: it is gone. None as in apply_reading."""
    locked = locked_instance(instance)
    if locked is None or is_older(locked, now):
        return None
    if locked.gone_at is None:
        changes, before = Changes(), snapshot(locked)
        locked.state, locked.billing = InstanceState.TERMINATED, Billing.NONE
        locked.state_reason, locked.state_since, locked.gone_at = reason, now, now
        locked.doubted_since = None
        changes.gone.append(locked)
        changes.note(locked, before)
        changes.observations.append(observation_of(locked, now=now, unchanged_until=locked.last_seen_at, listed=False))
        write(changes, account=locked.account, known=[], now=now)
    Instance.objects.filter(pk=locked.pk).update(probed_at=now)
    return locked


def locked_instance(instance: Instance) -> Instance | None:
    """Behind the account's row, as listings lock. None where the account was disconnected: nobody looks any more."""
    account = ProviderAccount.objects.select_for_update().filter(pk=instance.account_id, disconnected_at=None).first()
    if account is None:
        return None
    locked = Instance.objects.select_for_update(of=("self",)).get(pk=instance.pk)
    locked.account = account
    return locked


def is_older(instance: Instance, now: datetime) -> bool:
    return now < instance.last_seen_at or (instance.probed_at is not None and now < instance.probed_at)


def _first(changes: Changes, instance: Instance, values: dict[str, object], now: datetime) -> None:
    """What a launch named is shown for the first time: from here on it is a machine like any other."""
    before = snapshot(instance)
    for name, value in values.items():
        setattr(instance, name, value)
    instance.state_since = now
    instance.gone_at = now if instance.state == InstanceState.TERMINATED else None
    changes.note(instance, before)
    changes.observations.append(observation_of(instance, now=now, unchanged_until=now))


def _image(instance: Instance, machine: ProviderInstance) -> Image | None:
    """The image that it runs, where a listing has named it; the one that is known, where this reading says nothing."""
    external_id = image_text("external_id", machine.image_id)
    found = Image.objects.filter(account=instance.account, external_id=external_id).first() if external_id else None
    return found or instance.image


@transaction.atomic
def name_machine(*, account: ProviderAccount, ref: Ref, name: str, now: datetime) -> Instance:
    """The machine that a provider named in answer to a launch: in the list from that moment on, its state not known yet."""
    ProviderAccount.objects.select_for_update().get(pk=account.pk)
    region, external_id = text(Instance, "region", ref.region), text(Instance, "external_id", ref.external_id)
    unseen = {
        "team_id": account.team_id,
        "name": name,
        "currency": account.currency,
        "first_seen_at": now,
        "last_seen_at": now,
        "state_since": now,
        "managed": True,
    }
    instance, made = Instance.objects.get_or_create(
        account=account, region=region, external_id=external_id, defaults=unseen
    )
    if made:
        observe(instance, now=now)
    return instance
