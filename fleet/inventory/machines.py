"""What people say of machines: typed ones, owners, projects, labels, holds. A listing never overwrites any of it."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Greatest
from django.utils import timezone

from fleet.inventory.accounts import MANUAL, difference, manual_account
from fleet.inventory.models import Hold, HoldKind, Instance, ProviderAccount
from fleet.inventory.observe import OBSERVED, observe
from fleet.inventory.signals import announce_described
from fleet.providers.base import Billing, InstanceState, Tenancy
from fleet.providers.gpus import canonical
from fleet.providers.manual import Manual, billing_of
from fleet.teams.audit import Actor, record
from fleet.teams.models import APIToken, Project, Team, User

# What people may say of any machine, and what only of one that no provider lists.
PEOPLES_FIELDS = ("managed", "owner", "project", "labels", "expires_at", "ssh_typed")
TYPED_FIELDS = (
    "name",
    "region",
    "state",
    "tenancy",
    "gpu_raw",
    "gpu_count",
    "price_per_hour",
    "storage_price_per_hour",
    "currency",
    "ssh",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedMachine:
    """A machine as a person describes it. None and "" = not said. Prices are for the whole machine, an hour."""

    name: str
    region: str = ""
    state: str = InstanceState.RUNNING
    tenancy: str = Tenancy.UNKNOWN
    gpu_raw: str = ""
    gpu_count: int | None = None
    price_per_hour: Decimal | None = None
    storage_price_per_hour: Decimal | None = None
    currency: str = "USD"
    ssh: list[dict[str, Any]] = field(default_factory=list)


@transaction.atomic
def add_machine(
    *,
    actor: Actor,
    team: Team,
    typed: TypedMachine,
    account: ProviderAccount | None = None,
    owner: User | None = None,
    project: Project | None = None,
    labels: Mapping[str, str] | None = None,
    expires_at: datetime | None = None,
    now: datetime | None = None,
) -> Instance:
    """A machine that no provider lists: typed by a person, or reported by its own agent. It is managed from the start."""
    now = now or timezone.now()
    instance = Instance(
        team=team,
        account=account or manual_account(team),
        external_id=uuid.uuid4().hex,
        managed=True,
        owner=owner,
        project=project,
        labels=dict(labels or {}),
        expires_at=expires_at,
        first_seen_at=now,
        last_seen_at=now,
        state_since=now,
        started_at=now,
    )
    say(instance, typed, now=now)
    instance.save()
    observe(instance, now=now)
    record(actor=actor, team=team, action="instance.add", target=instance, new=said(instance))
    announce_described(instance)
    return instance


@transaction.atomic
def update_machine(
    *,
    actor: Actor,
    instance: Instance,
    managed: bool,
    owner: User | None,
    project: Project | None,
    labels: Mapping[str, str],
    expires_at: datetime | None = None,
    typed: TypedMachine | None = None,
    ssh_typed: str | None = None,
    now: datetime | None = None,
) -> Instance:
    """`typed` only for a machine of a manual account: what a provider lists is not ours to say (ValueError)."""
    now = now or timezone.now()
    locked = Instance.objects.select_for_update(of=("self",)).select_related("account", "team").get(pk=instance.pk)
    before = said(locked)
    seen_before = [getattr(locked, name) for name in OBSERVED]
    locked.managed, locked.owner, locked.project, locked.labels = managed, owner, project, dict(labels)
    locked.ssh_typed = locked.ssh_typed if ssh_typed is None else ssh_typed
    if typed is not None:
        if not is_typed(locked):
            raise ValueError(f"{locked} is listed by its provider")
        locked.expires_at = expires_at
        say(locked, typed, now=now)
    locked.save()
    if [getattr(locked, name) for name in OBSERVED] != seen_before:
        observe(locked, now=now, unchanged_until=now)
    changed = difference(before, said(locked))
    record(actor=actor, team=locked.team, action="instance.update", target=locked, **changed)
    announce_described(locked)
    return locked


@transaction.atomic
def register_machines(*, actor: Actor, account: ProviderAccount) -> int:
    """Registers every machine of the account that nobody has. Returns how many."""
    fresh = Instance.objects.select_for_update(of=("self",)).filter(account=account, managed=False, gone_at=None)
    found = list(fresh.select_related("team").order_by("pk"))
    Instance.objects.filter(pk__in=[instance.pk for instance in found]).update(managed=True)
    for instance in found:
        record(
            actor=actor,
            team=instance.team,
            action="instance.register",
            target=instance,
            old={"managed": False},
            new={"managed": True},
        )
    return len(found)


@transaction.atomic
def retire_machine(*, actor: Actor, instance: Instance, now: datetime | None = None) -> bool:
    """A machine that no provider lists is no more. False: it was gone already. Raises ValueError for a listed one."""
    now = now or timezone.now()
    if not is_typed(instance):
        raise ValueError(f"{instance} is listed by its provider")
    state, billing = InstanceState.TERMINATED, Billing.NONE
    ended = Instance.objects.filter(pk=instance.pk, gone_at=None).update(
        state=state, raw_state=state, billing=billing, gone_at=now, state_since=now, provider_stopped_at=now
    )
    if ended:
        instance.refresh_from_db()
        observe(instance, now=now, unchanged_until=now)
        record(actor=actor, team=instance.team, action="instance.retire", target=instance)
    return bool(ended)


@transaction.atomic
def place_hold(
    *,
    actor: Actor,
    instance: Instance,
    until: datetime | None = None,
    reason: str = "",
    owner: User | None = None,
    kind: HoldKind = HoldKind.PERSON,
    now: datetime | None = None,
) -> Hold:
    """Keeps the machine from being stopped, until `until` or until it is released."""
    hold = Hold.objects.create(
        instance=instance, kind=kind, owner=owner, reason=reason, expires_at=until, started_at=now or timezone.now()
    )
    new = {"kind": kind.value, "reason": reason, "until": until.isoformat() if until else None}
    record(actor=actor, team=instance.team, action="hold.place", target=instance, new=new)
    return hold


@transaction.atomic
def release_hold(*, actor: Actor, hold: Hold, now: datetime | None = None) -> bool:
    """False: it had ended already, and the end on record stays."""
    ended = Hold.objects.filter(pk=hold.pk, ended_at=None).update(ended_at=now or timezone.now())
    if ended:
        instance = hold.instance
        old = {"kind": hold.kind, "reason": hold.reason}
        record(actor=actor, team=instance.team, action="hold.release", target=instance, old=old)
    return bool(ended)


def keep_alive(
    *, actor: Actor, instance: Instance, until: datetime, reason: str, token: APIToken | None = None, now: datetime
) -> Hold:
    """What a run says of itself, again and again. One heartbeat a machine and caller: it is placed once, on record, and then only lasts longer.

    A later one never shortens it: two runs on a machine may speak with one token. After it ran out, the next begins a new one.
    """
    whose = {"kind": HoldKind.HEARTBEAT, "token": token, "owner": None if token else actor.user}
    beating = holds_in_force(now=now).filter(instance=instance, **whose)
    lasts = Greatest("expires_at", Value(until))
    if beating.update(expires_at=lasts, reason=reason):
        return beating.latest("started_at")
    with transaction.atomic():
        # Two that come at once place one.
        Instance.objects.select_for_update(of=("self",)).get(pk=instance.pk)
        if beating.update(expires_at=lasts, reason=reason):
            return beating.latest("started_at")
        hold = Hold.objects.create(instance=instance, reason=reason, expires_at=until, started_at=now, **whose)
        new = {"kind": hold.kind, "reason": reason, "until": until.isoformat()}
        record(actor=actor, team=instance.team, action="hold.place", target=instance, new=new)
    return hold


def holds_in_force(*, now: datetime) -> QuerySet[Hold]:
    """Not released, and not past their end."""
    return Hold.objects.filter(Q(expires_at=None) | Q(expires_at__gt=now), ended_at=None)


def is_typed(instance: Instance) -> bool:
    return instance.account.kind == MANUAL


def say(instance: Instance, typed: TypedMachine, *, now: datetime) -> None:
    """Writes what was typed onto the row, the way a listing would."""
    if instance.state != typed.state:
        instance.state_since = now
        instance.provider_stopped_at = None if typed.state == InstanceState.RUNNING else now
    for name in TYPED_FIELDS:
        setattr(instance, name, getattr(typed, name))
    instance.raw_state = typed.state
    instance.billing = billing_of(typed.state)
    instance.gone_at = now if typed.state == InstanceState.TERMINATED else None
    instance.gpu_model = canonical(typed.gpu_raw)
    instance.rule_version = Manual.rule_version
    # A typed price is no reading that grows old: it holds until somebody types another.
    instance.priced_at = None


def said(instance: Instance) -> dict[str, object]:
    """JSON-ready, for the audit log."""
    plain: dict[str, object] = {}
    for name in (*PEOPLES_FIELDS, *TYPED_FIELDS):
        value = getattr(instance, name)
        plain[name] = value if value is None or isinstance(value, bool | int | list | dict) else str(value)
    return plain
