"""Provider accounts: made, changed, paused, checked, disconnected. Secrets go into `credentials` and come out for the adapter only."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial

from django.db import transaction
from django.utils import timezone

from fleet.inventory.adapters import adapter_class, secrets_of
from fleet.inventory.credentials import seal
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.observe import observe
from fleet.inventory.tasks import check_account
from fleet.inventory.words import DISCONNECTED
from fleet.providers.base import Billing, InstanceState
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team

MANUAL = "manual"
MANUAL_NAME = "By hand"
POLL_CHOICES_SECONDS = (30, 60, 300, 900)


@transaction.atomic
def create_account(
    *,
    actor: Actor,
    team: Team,
    kind: str,
    name: str,
    values: Mapping[str, str],
    monitor_only: bool = True,
    poll_interval_seconds: int = 60,
) -> ProviderAccount:
    """`values`: the adapter's declared fields, secrets among them. Raises InvalidOption for a value that it cannot use."""
    adapter_class(kind)(filled(kind, values))
    account = ProviderAccount.objects.create(
        team=team,
        kind=kind,
        name=name,
        credentials=seal(secret_part(kind, values)),
        options=open_part(kind, values),
        monitor_only=monitor_only,
        poll_interval_seconds=poll_interval_seconds,
        currency=team.currency,
    )
    record(actor=actor, team=team, action="account.create", target=account, new=shown(account))
    return account


@transaction.atomic
def update_account(
    *,
    actor: Actor,
    account: ProviderAccount,
    name: str,
    values: Mapping[str, str],
    monitor_only: bool,
    poll_interval_seconds: int,
) -> ProviderAccount:
    """An empty secret keeps the one that is there. The next poll is at once: what was wrong may be right now."""
    locked = ProviderAccount.objects.select_for_update().get(pk=account.pk)
    kind, before = locked.kind, shown(locked)
    kept = {**secrets_of(locked), **secret_part(kind, values)}
    adapter_class(kind)(filled(kind, {**values, **kept}))
    replaced = kept != secrets_of(locked)
    options = open_part(kind, values)
    if replaced or options != locked.options:
        locked.keyed_at = timezone.now()
    locked.name, locked.monitor_only, locked.poll_interval_seconds = name, monitor_only, poll_interval_seconds
    locked.options = options
    if replaced:
        locked.credentials = seal(kept)
    locked.next_poll_at = timezone.now()
    locked.save()
    after = {**shown(locked), **({"credentials": "replaced"} if replaced else {})}
    record(actor=actor, team=locked.team, action="account.update", target=locked, **difference(before, after))
    return locked


@transaction.atomic
def pause_account(*, actor: Actor, account: ProviderAccount, paused: bool) -> bool:
    """Stops or resumes reading. False: it was so already."""
    changed = ProviderAccount.objects.filter(pk=account.pk, enabled=paused, disconnected_at=None).update(
        enabled=not paused, next_poll_at=timezone.now()
    )
    if changed:
        action = "account.pause" if paused else "account.resume"
        record(actor=actor, team=account.team, action=action, target=account)
    return bool(changed)


@transaction.atomic
def delete_account(*, actor: Actor, account: ProviderAccount, now: datetime | None = None) -> bool:
    """Disconnects: the credentials are gone for good, the machines leave the fleet, their record stays. Stops no machine."""
    now = now or timezone.now()
    changed = ProviderAccount.objects.filter(pk=account.pk, disconnected_at=None).update(
        disconnected_at=now, enabled=False, credentials=b"", poll_started_at=None
    )
    if not changed:
        return False
    for instance in Instance.objects.filter(account=account, gone_at=None).select_for_update():
        # Nobody looks any more: it may run on and cost, so nothing is claimed of its state.
        instance.state, instance.billing = InstanceState.UNKNOWN, Billing.UNKNOWN
        instance.state_reason, instance.state_since, instance.gone_at = DISCONNECTED, now, now
        instance.save()
        observe(instance, now=now, listed=False)
    record(actor=actor, team=account.team, action="account.disconnect", target=account, old=shown(account))
    return True


@transaction.atomic
def verify_account(*, actor: Actor, account: ProviderAccount) -> None:
    """Starts a check of the credentials in the background; its result is in `check_results`."""
    ProviderAccount.objects.filter(pk=account.pk).update(check_started_at=timezone.now(), checked_at=None)
    record(actor=actor, team=account.team, action="account.verify", target=account)
    transaction.on_commit(partial(check_account.delay, account.pk))


def manual_account(team: Team) -> ProviderAccount:
    """Where machines without a provider's API belong; made on first need."""
    mine = ProviderAccount.objects.filter(team=team, kind=MANUAL, disconnected_at=None)
    found = mine.order_by("pk").first()
    if found:
        return found
    account, made = ProviderAccount.objects.get_or_create(
        team=team, kind=MANUAL, name=MANUAL_NAME, disconnected_at=None, defaults={"currency": team.currency}
    )
    if made:
        record(actor=Actor.system("inventory"), team=team, action="account.create", target=account, new=shown(account))
    return account


def filled(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    return {field.name: values.get(field.name, field.default) for field in adapter_class(kind).fields}


def secret_part(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    """The secrets that were typed; an empty one was not."""
    names = [field.name for field in adapter_class(kind).fields if field.secret]
    return {name: values[name] for name in names if values.get(name)}


def open_part(kind: str, values: Mapping[str, str]) -> dict[str, str]:
    return {
        field.name: values.get(field.name, field.default) for field in adapter_class(kind).fields if not field.secret
    }


def shown(account: ProviderAccount) -> dict[str, object]:
    """What the audit log may hold of an account: everything but the secrets."""
    names = ("kind", "name", "options", "monitor_only", "poll_interval_seconds")
    return {name: getattr(account, name) for name in names}


def difference(before: Mapping[str, object], after: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """`old` and `new` of an audit row: only what changed."""
    changed = [name for name in after if before.get(name) != after[name]]
    return {
        "old": {name: before[name] for name in changed if name in before},
        "new": {name: after[name] for name in changed},
    }
