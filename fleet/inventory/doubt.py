"""A complete list that lost most of its machines at once: a key that lost a right looks like that, and so does a project that was changed.

missing with most others, or not seen since the key was changed ──► doubted: still counted, its billing unknown
doubted ──asked for by itself, and it is there────────────────────► there again
        ──asked for by itself, and the provider knows none────────► gone
        ──a list names it again───────────────────────────────────► there again
        ──a person says so────────────────────────────────────────► gone
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import cast

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from fleet.inventory.failures import as_provider_error
from fleet.inventory.missing import may_deny, settle_account
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.probe import apply_absence, apply_reading
from fleet.inventory.words import DECLARED_GONE
from fleet.providers.base import Capability, FindsInstance, Provider, Ref
from fleet.teams.audit import Actor, record

logger = logging.getLogger(__name__)
# What one reading of an account may ask for one by one, and how many refusals end it for this time.
ASKED_AT_ONCE = 50
REFUSALS = 3


def ask_for_doubted(*, account: ProviderAccount, adapter: Provider, deadline: float) -> int:
    """Asks the provider for each doubted machine by itself, until `deadline` (monotonic). Returns how many are settled."""
    if Capability.FIND not in adapter.capabilities:
        return 0
    refused = settled = 0
    for instance in _due(account):
        if time.monotonic() > deadline or refused >= REFUSALS:
            break
        try:
            settled += _ask(account, adapter, instance)
        except Exception as error:  # noqa: BLE001 - a machine that cannot be read stays in doubt; a bug is logged
            refused += 1
            logger.info("%s cannot be read by itself: %s", instance, as_provider_error(error, account).kind)
    if settled:
        settle_account(account)
    return settled


def _due(account: ProviderAccount) -> Iterable[Instance]:
    """In no order, so that a machine that cannot be read holds up no other for ever."""
    missed = Instance.objects.filter(account=account, missed_listings__gte=settings.LISTINGS_UNTIL_GONE)
    return missed.filter(gone_at=None, doubted_since__isnull=False).order_by("?")[:ASKED_AT_ONCE]


def _ask(account: ProviderAccount, adapter: Provider, instance: Instance) -> bool:
    began = timezone.now()
    ref = Ref(instance.external_id, instance.region)
    machine = cast(FindsInstance, adapter).instance(ref)
    if machine is not None:
        shown = apply_reading(instance=instance, machine=machine, rule_version=adapter.rule_version, now=began)
        return shown is not None
    if not may_deny(account, instance):
        return False
    return apply_absence(instance=instance, now=began) is not None


@transaction.atomic
def declare_gone(
    *, actor: Actor, instances: Collection[Instance], reason: str = "", now: datetime | None = None
) -> int:
    """A person says that doubted machines are gone: they have looked at the provider. Others are left as they are. Returns how many."""
    now = now or timezone.now()
    doubted = Instance.objects.filter(pk__in=[instance.pk for instance in instances], doubted_since__isnull=False)
    declared = 0
    for instance in doubted.filter(gone_at=None).select_related("team", "account").order_by("account", "pk"):
        if apply_absence(instance=instance, now=now, reason=DECLARED_GONE) is None:
            continue
        record(actor=actor, team=instance.team, action="instance.declare_gone", target=instance, new={"reason": reason})
        settle_account(instance.account)
        declared += 1
    return declared
