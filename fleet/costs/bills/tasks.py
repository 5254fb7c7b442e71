"""Background work of bills. Every task fetches by id and calls a use-case."""

from __future__ import annotations

from datetime import date, timedelta

from celery import shared_task
from django.utils import timezone

from fleet.costs.bills.comparing import compare_month
from fleet.costs.bills.jobs import COMPARE
from fleet.costs.bills.models import BillUpload, Reconciliation
from fleet.inventory.models import ProviderAccount

# The ledger may still move under them; older months only when a bill comes.
COMPARED_AGAIN = timedelta(days=70)
UPLOADS_KEPT = timedelta(days=1)


@shared_task(name=COMPARE)
def compare_bills(account_id: int, month: str) -> int:
    account = ProviderAccount.objects.select_related("team").filter(pk=account_id).first()
    if account is None:
        return 0
    return len(compare_month(account=account, month=date.fromisoformat(month), now=timezone.now()))


@shared_task(name="costs.compare_recent_bills")
def compare_recent_bills() -> int:
    """What was counted may have changed since: every recent month that was compared once."""
    since = (timezone.now() - COMPARED_AGAIN).date()
    pairs = set(Reconciliation.objects.filter(month__gte=since).values_list("account_id", "month"))
    for account_id, month in sorted(pairs):
        compare_bills.delay(account_id, month.isoformat())
    return len(pairs)


@shared_task(name="costs.prune_bill_uploads")
def prune_bill_uploads() -> int:
    return BillUpload.objects.filter(created_at__lt=timezone.now() - UPLOADS_KEPT).delete()[0]
