"""Typed charges: added, ended, removed with a reason. Each is an interval of the ledger; history is never rewritten silently."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from fleet.costs.book.models import LedgerChange, LedgerInterval, LedgerMeter
from fleet.costs.charges.models import TypedCharge
from fleet.costs.ledger.intervals import EdgeSource, PriceSource, Unit
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.observe import KEPT
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team

# As far back as bills can be checked; an end further ahead than any term is a typing error.
BACK, AHEAD = KEPT, timedelta(days=3_660)
# What is charged once and for no span of time is charged in the second in which it begins.
MOMENT = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCharge:
    """As somebody types it. `quantity`: GB for the unit gb_month."""

    kind: str
    name: str
    unit: str
    price: Decimal
    currency: str
    starts_at: datetime
    ends_at: datetime | None = None
    quantity: Decimal = Decimal(1)
    note: str = ""


@transaction.atomic
def add_charge(
    *,
    actor: Actor,
    team: Team,
    account: ProviderAccount,
    typed: NewCharge,
    now: datetime,
    instance: Instance | None = None,
) -> TypedCharge:
    """Raises ValidationError, by field: for times that cannot be, something of another team, or a charge of that name in that time."""
    check_place(team, account, instance)
    starts_at, ends_at = span_of(typed, now=now)
    charge = TypedCharge.objects.create(
        team=team,
        account=account,
        instance=instance,
        kind=typed.kind,
        name=typed.name,
        unit=typed.unit,
        price=typed.price,
        quantity=typed.quantity,
        currency=typed.currency,
        starts_at=starts_at,
        ends_at=ends_at,
        note=typed.note,
        created_by=actor.user,
        created_at=now,
    )
    write_interval(charge)
    tell(charge, starts_at)
    record(actor=actor, team=team, action="charge.add", target=charge, new=said(charge))
    return charge


@transaction.atomic
def end_charge(*, actor: Actor, charge: TypedCharge, ends_at: datetime, now: datetime) -> bool:
    """False: it has an end already, or was removed. Raises ValidationError for an end before its beginning."""
    ends_at = ends_at.replace(microsecond=0)
    if ends_at <= charge.starts_at:
        raise ValidationError({"ends_at": _("It ends before it begins: choose a later end, or remove it.")})
    if ends_at > now + AHEAD:
        raise ValidationError({"ends_at": _("The end is more than ten years away: choose an earlier one.")})
    changed = TypedCharge.objects.filter(pk=charge.pk, ends_at=None, removed_at=None).update(ends_at=ends_at)
    if not changed:
        return False
    charge.ends_at = ends_at
    intervals_of(charge).update(period=DateTimeTZRange(charge.starts_at, ends_at))
    tell(charge, min(ends_at, now))
    record(
        actor=actor,
        team=charge.team,
        action="charge.end",
        target=charge,
        old={"until": None},
        new={"until": ends_at.isoformat()},
    )
    return True


@transaction.atomic
def remove_charge(*, actor: Actor, charge: TypedCharge, reason: str, now: datetime) -> bool:
    """It should never have been there: it counts for no day any more, and stays on record. False: it was removed already."""
    if not reason:
        raise ValidationError({"reason": _("Say why: totals of days that are over change with it.")})
    changed = TypedCharge.objects.filter(pk=charge.pk, removed_at=None).update(
        removed_at=now, removed_by=actor.user, removed_reason=reason
    )
    if changed:
        intervals_of(charge).delete()
        tell(charge, charge.starts_at)
        record(
            actor=actor,
            team=charge.team,
            action="charge.remove",
            target=charge,
            old=said(charge),
            new={"reason": reason},
        )
    return bool(changed)


def check_place(team: Team, account: ProviderAccount, instance: Instance | None) -> None:
    if account.team_id != team.pk:
        raise ValidationError({"account": _("Choose a provider account of this team.")})
    if instance is not None and instance.account_id != account.pk:
        raise ValidationError({"instance": _("Choose a machine of this account.")})


def span_of(typed: NewCharge, *, now: datetime) -> tuple[datetime, datetime | None]:
    """Of whole seconds."""
    starts_at = typed.starts_at.replace(microsecond=0)
    ends_at = typed.ends_at.replace(microsecond=0) if typed.ends_at else None
    if starts_at < now - BACK:
        raise ValidationError({"starts_at": _("That is more than 25 months ago: choose a later beginning.")})
    if starts_at > now + AHEAD:
        raise ValidationError({"starts_at": _("The beginning is more than ten years away: choose an earlier one.")})
    if ends_at is not None and ends_at <= starts_at:
        raise ValidationError({"ends_at": _("It ends before it begins: choose a later end.")})
    if ends_at is not None and ends_at > now + AHEAD:
        raise ValidationError({"ends_at": _("The end is more than ten years away: choose an earlier one.")})
    if ends_at is None and typed.unit == Unit.ONCE:
        ends_at = starts_at + MOMENT
    return starts_at, ends_at


def write_interval(charge: TypedCharge) -> None:
    meter, _made = LedgerMeter.objects.get_or_create(
        account=charge.account,
        instance=charge.instance,
        kind=charge.kind,
        resource=charge.name,
        defaults={"team": charge.team},
    )
    try:
        with transaction.atomic():
            LedgerInterval.objects.create(
                meter=meter,
                period=DateTimeTZRange(charge.starts_at, charge.ends_at),
                unit=charge.unit,
                unit_price=charge.price,
                quantity=charge.quantity,
                currency=charge.currency,
                price_source=PriceSource.TYPED.value,
                seen_at=charge.created_at,
                start_source=EdgeSource.TYPED.value,
            )
    except IntegrityError:
        # PostgreSQL lets no two intervals of a meter overlap.
        raise ValidationError(
            {"name": _("A charge of this name runs in that time already: end it first, or choose another name.")}
        ) from None


def intervals_of(charge: TypedCharge) -> QuerySet[LedgerInterval]:
    return LedgerInterval.objects.filter(
        meter__account=charge.account_id,
        meter__instance=charge.instance_id,
        meter__kind=charge.kind,
        meter__resource=charge.name,
        period__startswith=charge.starts_at,
    )


def tell(charge: TypedCharge, from_at: datetime) -> None:
    """Whoever sums days."""
    LedgerChange.objects.create(account_id=charge.account_id, instance_id=charge.instance_id, from_at=from_at)


def said(charge: TypedCharge) -> dict[str, object]:
    return {
        "account": charge.account.name,
        "instance": charge.instance.name if charge.instance else None,
        "charge": charge.kind,
        "name": charge.name,
        "price": f"{charge.price.normalize():f}",
        "unit": charge.unit,
        "quantity": f"{charge.quantity.normalize():f}",
        "currency": charge.currency,
        "starts_at": charge.starts_at.isoformat(),
        "until": charge.ends_at.isoformat() if charge.ends_at else None,
    }
