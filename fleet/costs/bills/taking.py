"""Takes a bill: its lines beside those that are there already. Nothing is overwritten; what is said anew supersedes, and both are kept."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from django.db import transaction

from fleet.costs.bills.billed import current_lines, middle_of
from fleet.costs.bills.by_hand import ByHand, said_by_hand
from fleet.costs.bills.jobs import compare_later
from fleet.costs.bills.models import Bill, BillLine, BillSource
from fleet.costs.ledger.charges import next_month
from fleet.inventory.models import Instance, ProviderAccount
from fleet.providers.base import BilledCharge, ChargeKind
from fleet.teams.audit import Actor, record

BATCH = 2_000
MOST_KEY = 200
MOMENT = timedelta(microseconds=1)
# What lines of one key are compared by: another value makes it a new line.
SAYS = (
    "kind",
    "raw_kind",
    "external_id",
    "resource",
    "starts_at",
    "ends_at",
    "amount",
    "currency",
    "quantity",
    "unit",
    "description",
)


@dataclass(frozen=True, slots=True)
class Taken:
    """`bill`: None where there was nothing to take. `again`: the very same was taken before, and still counts."""

    bill: Bill | None
    new: int = 0
    changed: int = 0
    dropped: int = 0
    same: int = 0
    again: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """A bill before it is taken. `complete`: lines that are there within [starts_at, ends_at), and that it does not have, no longer count."""

    source: str
    charges: Sequence[BilledCharge]
    starts_at: datetime
    ends_at: datetime
    file_name: str = ""
    complete: bool = True
    digest: str = ""


def found_in_file(
    charges: Sequence[BilledCharge], *, source: str, content: bytes, file_name: str, complete: bool, now: datetime
) -> Found:
    """`charges`: at least one. A complete file is the bill of its months, as far as these have gone."""
    start, end = min(one.start for one in charges), max(one.end for one in charges)
    if complete:
        middles = [one.start + (one.end - one.start) / 2 for one in charges]
        start, last = first_of_month(min(middles)), next_month(first_of_month(max(middles)))
        end = last if last <= now else max(end, start)
    # The same bytes read in another way are another bill.
    ids = "\n".join(f"{one.line_id} {one.start} {one.amount}" for one in charges)
    digest = hashlib.sha256(content + ids.encode()).hexdigest()
    return Found(source, charges, start, end, file_name, complete, digest)


def first_of_month(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def digest_of(found: Found) -> str:
    told = [asdict(charge) for charge in found.charges]
    whole = json.dumps([str(found.starts_at), str(found.ends_at), told], default=str, sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()


@transaction.atomic
def take_bill(*, actor: Actor, account: ProviderAccount, found: Found, now: datetime) -> Taken:
    """The same bill twice is taken once; of two at the same time, the second sees what the first left."""
    ProviderAccount.objects.select_for_update().only("pk").get(pk=account.pk)
    digest = found.digest or digest_of(found)
    if before := Bill.objects.filter(account=account, digest=digest, state="current").first():
        return Taken(before, same=before.line_count, again=True)
    rows = rows_to_take(account, found)
    old = {line.key: line for line in lines_in_the_way(account, found, rows)}
    same = {key for key, line in old.items() if key in rows and says(line) == says(rows[key])}
    bill = Bill.objects.create(
        team_id=account.team_id,
        account=account,
        source=found.source,
        file_name=found.file_name[:200],
        digest=digest,
        starts_at=found.starts_at,
        ends_at=found.ends_at,
        line_count=len(found.charges),
        state="current",
        imported_at=now,
        imported_by=actor.user,
    )
    superseded = [line.pk for key, line in old.items() if key not in same]
    BillLine.objects.filter(pk__in=superseded).update(superseded_by=bill)
    fresh = [row for key, row in rows.items() if key not in same]
    for row in fresh:
        row.bill = bill
    BillLine.objects.bulk_create(fresh, batch_size=BATCH)
    retire_empty_bills(account, keep=bill)
    changed = sum(key in rows for key in old) - len(same)
    taken = Taken(bill, len(fresh) - changed, changed, len(superseded) - changed, len(same))
    record(actor=actor, team=account.team, action="bill.take", target=bill, new=told(account, taken))
    compare_later(account, months_of([*rows.values(), *old.values()]))
    return taken


def told(account: ProviderAccount, taken: Taken) -> dict[str, object]:
    return {
        "account": account.name,
        "new": taken.new,
        "changed": taken.changed,
        "dropped": taken.dropped,
        "same": taken.same,
    }


def preview(*, account: ProviderAccount, found: Found) -> Taken:
    """What taking it would do. Writes nothing."""
    if found.digest and Bill.objects.filter(account=account, digest=found.digest, state="current").exists():
        return Taken(None, same=len(found.charges), again=True)
    rows = rows_to_take(account, found)
    old = {line.key: line for line in lines_in_the_way(account, found, rows)}
    same = sum(key in rows and says(line) == says(rows[key]) for key, line in old.items())
    known = sum(key in rows for key in old)
    return Taken(None, len(rows) - known, known - same, len(old) - known, same)


def rows_to_take(account: ProviderAccount, found: Found) -> dict[str, BillLine]:
    """By key. What a file says already is not taken from the provider too."""
    rows = {row.key: row for row in rows_of(account, found.charges)}
    said = said_by_hand(account, rows.values()) if found.source == BillSource.API else set()
    return {key: row for key, row in rows.items() if key not in said}


def lines_in_the_way(account: ProviderAccount, found: Found, rows: Mapping[str, BillLine]) -> list[BillLine]:
    """Those that count now and are said anew, or are within the bill's time and not in it. What files say stands before a provider's answer."""
    asked = found.source == BillSource.API
    by_hand = ByHand(() if asked else rows.values())

    def is_in_the_way(line: BillLine) -> bool:
        told = line.bill.source == BillSource.API
        dropped = found.complete and (told or not asked) and inside(line, found)
        return line.key in rows or dropped or (told and by_hand.says(line))

    near = current_lines(account).filter(starts_at__lt=found.ends_at, ends_at__gt=found.starts_at)
    within = [line for line in near.select_related("bill") if is_in_the_way(line)]
    seen = {line.pk for line in within}
    elsewhere = current_lines(account).filter(key__in=list(rows)).exclude(pk__in=seen)
    return [*within, *elsewhere]


def inside(line: BillLine, found: Found) -> bool:
    return found.starts_at <= middle_of(line) < found.ends_at


def says(line: BillLine) -> tuple[object, ...]:
    return tuple(getattr(line, name) for name in SAYS)


def rows_of(account: ProviderAccount, charges: Iterable[BilledCharge]) -> list[BillLine]:
    told_of = list(charges)
    machines = machines_of(account, told_of)
    return [row_of(account, linked(charge, machines), machines) for charge in told_of]


def machines_of(account: ProviderAccount, charges: Sequence[BilledCharge]) -> dict[str, int]:
    """Primary keys by the provider's id; of machines with one id in several regions the newest."""
    names = {name for charge in charges for name in names_in(charge.external_id)}
    rows = Instance.objects.filter(account=account, external_id__in=names).order_by("pk")
    return dict(rows.values_list("external_id", "pk"))


def names_in(word: str) -> tuple[str, ...]:
    """As it is, and the end of an address such as arn:aws:ec2:…:instance/i-0a1b."""
    return (word, word.rsplit("/", 1)[-1]) if word else ()


def linked(charge: BilledCharge, machines: Mapping[str, int]) -> BilledCharge:
    """What a file calls a resource is a machine only where there is one, or where it is charged for computing."""
    known = next((name for name in names_in(charge.external_id) if name in machines), None)
    if known is not None:
        return replace(charge, external_id=known)
    if charge.external_id and charge.kind not in {ChargeKind.COMPUTE, ChargeKind.OTHER}:
        return replace(charge, external_id="", resource=charge.resource or charge.external_id)
    return charge


def row_of(account: ProviderAccount, charge: BilledCharge, machines: Mapping[str, int]) -> BillLine:
    return BillLine(
        account=account,
        key=key_of(charge.line_id),
        kind=charge.kind,
        raw_kind=charge.raw_kind[:200],
        instance_id=machines.get(charge.external_id),
        external_id=charge.external_id[:200],
        resource=charge.resource[:200],
        starts_at=charge.start,
        ends_at=charge.end,
        amount=charge.amount.amount.quantize(Decimal("1e-12")),
        currency=charge.amount.currency,
        quantity=None if charge.quantity is None else charge.quantity.quantize(Decimal("1e-9")),
        unit=charge.unit[:60],
        description=charge.description[:300],
    )


def key_of(line_id: str) -> str:
    return line_id if len(line_id) <= MOST_KEY else hashlib.sha256(line_id.encode()).hexdigest()


def retire_empty_bills(account: ProviderAccount, *, keep: Bill) -> None:
    """Bills none of whose lines counts any more. Readings without lines stay: they say that there was nothing."""
    counting = current_lines(account).values("bill_id")
    Bill.objects.filter(account=account, state="current", line_count__gt=0).exclude(pk=keep.pk).exclude(
        pk__in=counting
    ).update(state="replaced")


def months_of(lines: Iterable[BillLine]) -> set[date]:
    """Those that lines reach into: a week that is of one month is not missing in the other."""
    moments = (at for line in lines for at in (line.starts_at, middle_of(line), line.ends_at - MOMENT))
    return {first_of_month(at).date() for at in moments}
