"""Background work of the inventory. Every task fetches by id and calls a use-case."""

from __future__ import annotations

from datetime import datetime

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from fleet.inventory.checks import run_checks
from fleet.inventory.models import ProviderAccount
from fleet.inventory.observe import prune_observations
from fleet.inventory.poll import claim_due, poll_account


@shared_task(name="inventory.dispatch_polls")
def dispatch_polls() -> int:
    """A provider that hangs holds its place for as long as a listing may take: others have the rest."""
    claims = claim_due(now=timezone.now(), at_once=settings.POLLS_AT_ONCE)
    for claim in claims:
        poll.apply_async((claim.account_id, claim.started_at.isoformat()), expires=claim.expires_at)
    return len(claims)


# The listing has its own time-out; this one catches an adapter that hangs inside a call.
SOFT_LIMIT_SECONDS = settings.POLL_TIMEOUT_SECONDS + 10
HARD_LIMIT_SECONDS = settings.POLL_TIMEOUT_SECONDS + 30


@shared_task(name="inventory.poll", soft_time_limit=SOFT_LIMIT_SECONDS, time_limit=HARD_LIMIT_SECONDS)
def poll(account_id: int, started_at: str) -> None:
    """Does nothing when its claim is no longer the account's: delivered twice, or picked up too late."""
    claimed_at = datetime.fromisoformat(started_at)
    account = ProviderAccount.objects.filter(pk=account_id, poll_started_at=claimed_at, disconnected_at=None).first()
    if account is not None:
        poll_account(account=account, now=claimed_at)
    # Who waited for a free place need not wait for the next beat.
    dispatch_polls()


@shared_task(name="inventory.check_account", soft_time_limit=SOFT_LIMIT_SECONDS, time_limit=HARD_LIMIT_SECONDS)
def check_account(account_id: int) -> None:
    account = ProviderAccount.objects.filter(pk=account_id, disconnected_at=None).first()
    if account is not None:
        run_checks(account=account, now=timezone.now())


@shared_task(name="inventory.check_draft", soft_time_limit=SOFT_LIMIT_SECONDS, time_limit=HARD_LIMIT_SECONDS)
def check_draft(token: str) -> None:
    # Drafts begin this task themselves.
    from fleet.inventory.drafts import run_draft

    run_draft(token)


@shared_task(name="inventory.prune_observations")
def prune() -> int:
    return prune_observations(now=timezone.now())
