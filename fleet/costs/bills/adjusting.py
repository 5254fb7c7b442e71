"""Corrects what was counted: only by rows beside it, with a reason, each of which can be reversed by another row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from fleet.costs.bills.billed import mostly_in
from fleet.costs.bills.matching import APART, ZERO, MeterClass, ReasonKind
from fleet.costs.bills.models import AcceptedLine, Reconciliation, ReconciliationLine
from fleet.costs.bills.words import CLASSES
from fleet.costs.book.models import LedgerChange
from fleet.costs.spend.models import Adjustment
from fleet.inventory.models import Instance, ProviderAccount
from fleet.teams.audit import Actor, record

KINDS = ("usage", "credit", "refund", "tax", "purchase", "correction")
MOST = Decimal(10) ** 9
STEP = Decimal("1e-10")
BILLS = Actor.system("bills")
# As long as observations are kept.
OLDEST = timedelta(days=25 * 31)
# account, machine, name, class of meters, start, end, currency
Spot = tuple[int, int | None, str, str, datetime, datetime, str]


@dataclass(frozen=True, slots=True)
class Correction:
    """An adjustment as it is asked for. `at`: in whose day it counts."""

    account: ProviderAccount
    instance: Instance | None
    at: datetime
    amount: Decimal
    currency: str
    kind: str
    reason: str


@transaction.atomic
def create_adjustment(*, actor: Actor, correction: Correction, now: datetime) -> Adjustment:
    """Raises ValidationError by field."""
    refuse_wrong(correction, now)
    made = written(actor, correction, now)
    record(actor=actor, team=made.team, action="adjustment.create", target=made, new=told(made))
    return made


def refuse_wrong(given: Correction, now: datetime) -> None:
    if not given.amount or abs(given.amount) > MOST or given.amount != given.amount.quantize(STEP):
        raise ValidationError(
            {"amount": _("Give an amount that is not zero, with ten decimals at most; a credit is negative.")}
        )
    if given.instance is not None and given.instance.account_id != given.account.pk:
        raise ValidationError({"instance": _("This machine is of another account.")})
    if not now - OLDEST <= given.at <= now:
        raise ValidationError({"at": _("Give a time of the last 25 months.")})
    if given.kind not in KINDS:
        raise ValidationError({"kind": _("Give one of %(known)s.") % {"known": ", ".join(KINDS)}})
    if len(given.currency) != 3 or not (given.currency.isascii() and given.currency.isupper()):
        raise ValidationError({"currency": _("Give the three letters of a currency, as USD.")})
    if not given.reason.strip():
        raise ValidationError({"reason": _("Say why: it stands beside the amount for ever.")})


def written(actor: Actor, given: Correction, now: datetime, *, reverses: Adjustment | None = None) -> Adjustment:
    """Also says to the daily sums that this day is another one now."""
    made = Adjustment.objects.create(
        team_id=given.account.team_id,
        account=given.account,
        instance=given.instance,
        at=given.at,
        amount=given.amount,
        currency=given.currency,
        kind=given.kind,
        reason=given.reason[:300],
        reverses=reverses,
        created_by=actor.user,
        created_at=now,
    )
    LedgerChange.objects.create(account=given.account, instance=given.instance, from_at=given.at)
    return made


@transaction.atomic
def reverse_adjustment(*, actor: Actor, adjustment: Adjustment, reason: str, now: datetime) -> Adjustment:
    """A row with the same amount the other way round, in the same day. Raises ValidationError where that is done already."""
    held = (
        Adjustment.objects.select_for_update(of=("self",)).select_related("account", "instance").get(pk=adjustment.pk)
    )
    if held.reverses_id or Adjustment.objects.filter(reverses=held).exists():
        raise ValidationError(_("It is reversed already, or takes another one back. Make a new one."))
    words = reason.strip() or _("Reversed: %(reason)s") % {"reason": held.reason}
    back = Correction(held.account, held.instance, held.at, -held.amount, held.currency, held.kind, words)
    made = written(actor, back, now, reverses=held)
    record(actor=actor, team=made.team, action="adjustment.reverse", target=held, new=told(made))
    return made


@transaction.atomic
def accept_lines(
    *, actor: Actor, reconciliation: Reconciliation, lines: Iterable[int], now: datetime
) -> list[Adjustment]:
    """Counts these lines as billed: what each is still off by, in its own day. Raises ValidationError for lines that were compared anew."""
    account = ProviderAccount.objects.select_for_update().get(pk=reconciliation.account_id)
    wanted = set(lines)
    rows = list(reconciliation.lines.filter(pk__in=wanted).select_related("instance", "reconciliation"))
    if len(rows) != len(wanted) or not rows:
        raise ValidationError(_("This month was compared anew meanwhile. Look at it again."))
    done = accepted_of(rows)
    made = [accepted(actor, account, row, done.get(spot_of(row), ZERO), now) for row in rows]
    kept = [one for one in made if one is not None]
    new = {"account": account.name, "month": f"{reconciliation.month:%Y-%m}", "adjustments": len(kept)}
    record(actor=actor, team=account.team, action="bill.accept", target=account, new=new)
    return kept


def accept_explained(*, actor: Actor, reconciliation: Reconciliation, now: datetime) -> list[Adjustment]:
    """All lines whose whole difference is explained, and is one to correct."""
    lines = list(reconciliation.lines.select_related("reconciliation"))
    done = accepted_of(lines)
    open_ = [row.pk for row in lines if not row.left and may_accept(row, done.get(spot_of(row), ZERO))]
    return accept_lines(actor=actor, reconciliation=reconciliation, lines=open_, now=now) if open_ else []


def may_accept(row: ReconciliationLine, done: Decimal) -> bool:
    """What another month's bill has is right where it is: correcting it would count it twice."""
    return bool(outstanding(row, done)) and all(reason["kind"] != ReasonKind.BORDER for reason in row.reasons)


def outstanding(row: ReconciliationLine, done: Decimal) -> Decimal:
    return (row.billed - row.counted - done).quantize(STEP)


def accepted(
    actor: Actor, account: ProviderAccount, row: ReconciliationLine, done: Decimal, now: datetime
) -> Adjustment | None:
    if not may_accept(row, done):
        return None
    kind = {MeterClass.CREDIT: "credit", MeterClass.TAX: "tax"}.get(MeterClass(row.meter), "correction")
    reason = _("Counted as billed: %(what)s") % {"what": f"{CLASSES[MeterClass(row.meter)]} {row.name}".strip()}
    # The middle lies in the line's own day, whatever the team's zone is.
    at = min(row.starts_at + (row.ends_at - row.starts_at) / 2, now)
    off = outstanding(row, done)
    made = written(actor, Correction(account, row.instance, at, off, row.reconciliation.currency, kind, reason), now)
    AcceptedLine.objects.create(
        adjustment=made,
        account=account,
        instance=row.instance,
        name=row.name,
        meter=row.meter,
        starts_at=row.starts_at,
        ends_at=row.ends_at,
    )
    return made


def accepted_of(rows: Sequence[ReconciliationLine]) -> dict[Spot, Decimal]:
    """What is counted as billed already, by line; reversed adjustments are not. One query, whatever the accounts.

    A bill that tells the same money by other days, or as one sum for a machine, has it where the middle of what was accepted lies.
    """
    if not rows:
        return {}
    first, last = min(row.starts_at for row in rows), max(row.ends_at for row in rows)
    places: dict[tuple[int, int | None, str], list[ReconciliationLine]] = {}
    for row in rows:
        places.setdefault((row.reconciliation.account_id, row.instance_id, row.name), []).append(row)
    found: dict[Spot, Decimal] = {}
    for one in accepted_in({place[0] for place in places}, first, last):
        near = places.get((one.account_id, one.instance_id, one.name), ())
        if spot := next((spot_of(row) for row in near if is_of(one, row)), None):
            found[spot] = found.get(spot, ZERO) + one.adjustment.amount
    return found


def accepted_in(accounts: Iterable[int], start: datetime, end: datetime) -> QuerySet[AcceptedLine]:
    """Of lines that reach into [start, end), and not reversed."""
    rows = AcceptedLine.objects.filter(account__in=accounts, starts_at__lt=end, ends_at__gt=start)
    return rows.filter(adjustment__reversed_by=None).select_related("adjustment")


def take_back_outdated(*, account: ProviderAccount, start: datetime, end: datetime, now: datetime) -> None:
    """What was counted as billed of [start, end) and is on no line any more, since bills and ledger both dropped it. Nobody could see it in a comparison."""
    near = accepted_in([account.pk], start, end)
    mine = [one for one in near if mostly_in(one.starts_at, one.ends_at, start, end)]
    if not mine:
        return
    rows = ReconciliationLine.objects.filter(reconciliation__account=account, reconciliation__month=start.date())
    lines = list(rows.select_related("reconciliation"))
    why = _("Taken back: it is neither on a bill nor counted any more")
    for one in mine:
        if not any((row.instance_id, row.name) == (one.instance_id, one.name) and is_of(one, row) for row in lines):
            reverse_adjustment(actor=BILLS, adjustment=one.adjustment, reason=why, now=now)


def is_of(one: AcceptedLine, row: ReconciliationLine) -> bool:
    if one.adjustment.currency != row.reconciliation.currency:
        return False
    same_meter = one.meter == row.meter or (
        MeterClass.ALL in (one.meter, row.meter) and not APART & {one.meter, row.meter}
    )
    return same_meter and row.starts_at <= one.starts_at + (one.ends_at - one.starts_at) / 2 < row.ends_at


def spot_of(row: ReconciliationLine) -> Spot:
    of = row.reconciliation
    return of.account_id, row.instance_id, row.name, row.meter, row.starts_at, row.ends_at, of.currency


def told(made: Adjustment) -> dict[str, str]:
    return {"amount": f"{made.amount:f}", "currency": made.currency, "kind": made.kind, "reason": made.reason}
