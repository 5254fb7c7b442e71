"""What providers announce for machines: kept once for as long as it is listed, closed when a complete answer lacks it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from fleet.inventory.listing import text
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.provider_word.keeping import BATCH, usage_key
from fleet.inventory.provider_word.models import ProviderNotice
from fleet.providers.base import Notice

# Something planned for years from now was misread.
AHEAD = timedelta(days=400)
KEPT = timedelta(days=90)


def keep_notices(*, account: ProviderAccount, told: Iterable[Notice], now: datetime) -> int:
    """`told` is complete. Returns how many are open. Machines that we do not know are left out: their list names them first."""
    rows = Instance.objects.filter(account=account, gone_at=None).values_list("pk", "region", "external_id")
    known = {(region, external_id): pk for pk, region, external_id in rows}
    found: dict[tuple[int, str], ProviderNotice] = {}
    for notice in told:
        if (pk := known.get(usage_key(notice.ref))) is not None:
            row = row_of(notice, account=account, instance_id=pk, now=now)
            found[pk, row.key] = row
    ProviderNotice.objects.bulk_create(
        [row for _key, row in sorted(found.items())],
        batch_size=BATCH,
        update_conflicts=True,
        unique_fields=["instance", "key"],
        update_fields=["kind", "starts_at", "detail", "last_seen_at", "gone_at"],
    )
    ProviderNotice.objects.filter(account=account, gone_at=None, last_seen_at__lt=now).update(gone_at=now)
    return len(found)


def row_of(notice: Notice, *, account: ProviderAccount, instance_id: int, now: datetime) -> ProviderNotice:
    return ProviderNotice(
        account=account,
        instance_id=instance_id,
        kind=notice.kind.value,
        key=text(ProviderNotice, "key", notice.key or notice.kind.value),
        starts_at=likely(notice.starts_at, now),
        detail=text(ProviderNotice, "detail", notice.detail),
        first_seen_at=now,
        last_seen_at=now,
    )


def likely(at: datetime | None, now: datetime) -> datetime | None:
    """None where it is of no zone or of another age."""
    return at if at is not None and at.tzinfo is not None and abs(at - now) <= AHEAD else None


def prune_notices(*, now: datetime) -> int:
    return ProviderNotice.objects.filter(gone_at__lt=now - KEPT).delete()[0]
