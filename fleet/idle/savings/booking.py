"""What was saved by stopping: booked when the provider shows the stop, growing until the machine runs again, and never longer than a week.

A week is as long as anybody can say that a machine which nobody used would have been left to run. After that, not renting it is simply
how things are, and a figure that grew for ever would say nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from django.db import transaction

from fleet.idle.shutdown.models import IdleSaving, IdleStop
from fleet.inventory.models import Instance
from fleet.inventory.plans.models import PlannedAction
from fleet.providers.base import Billing, InstanceState
from fleet.teams.audit import Actor, record

GROWS_FOR = timedelta(days=7)
SECONDS_PER_HOUR = 3_600
SAVINGS = Actor.system("idle")
OFF = frozenset({InstanceState.STOPPED, InstanceState.TERMINATED})


def book_saving(
    *,
    instance: Instance,
    stop: IdleStop | None = None,
    action: PlannedAction | None = None,
    since: datetime,
    now: datetime,
    price_per_hour: Decimal | None = None,
    currency: str = "",
) -> IdleSaving:
    """The saving of this stop or planned action; one that is booked stays as it is. Exactly one of the two is given.

    `since`: when the proof was read; the provider's own time of the stop counts where it lies between the order and that. The price is of when
    it was asked for; None: nobody knows it, and nothing is counted. What still grows of an earlier stop ends: the machine has run since.
    """
    if (stop is None) == (action is None):
        raise ValueError("a saving is of a stop or of a planned action")
    because = {"stop": stop} if stop is not None else {"planned_action": action}
    since = _proved_at(instance, stop, action, since)
    if stop is not None:
        price_per_hour, currency = stop.price_per_hour, stop.currency
    price = _saved_per_hour(instance, price_per_hour)
    values = {
        "team_id": instance.team_id,
        "instance": instance,
        "since": since,
        "most_until": since + GROWS_FOR,
        "counted_until": since,
        "gpu_count": instance.gpu_count,
        "price_per_hour": price,
        "currency": currency or instance.currency,
    }
    with transaction.atomic():
        saving, is_new = IdleSaving.objects.get_or_create(**because, defaults=values)
        if is_new:
            _end_earlier(saving, ran_at=_known_to_run_at(stop, action, since))
            _grow(saving, now)
            told = {"instance": instance.name, "price_per_hour": None if price is None else str(price)}
            record(actor=SAVINGS, team=instance.team, action="idle_saving.book", target=instance, new=told)
    return saving


def take_back_saving(*, stop: IdleStop) -> bool:
    """Its proof was taken back: nothing was saved. False: none was booked."""
    gone, _by_model = IdleSaving.objects.filter(stop=stop).delete()
    if gone:
        record(
            actor=SAVINGS,
            team=stop.team,
            action="idle_saving.take_back",
            target=stop.instance,
            new={"instance": stop.instance.name},
        )
    return bool(gone)


def grow_savings(*, now: datetime) -> int:
    """Brings every saving that still grows up to now, or to its end. How many ended."""
    rows = IdleSaving.objects.filter(until=None).select_related("instance", "stop", "planned_action")
    return sum(_grow(saving, now) for saving in rows.iterator())


def _grow(saving: IdleSaving, now: datetime) -> bool:
    end = _ended_at(saving, now)
    counted = max(min(end or now, saving.most_until), saving.since)
    until = counted if end is not None or now >= saving.most_until else None
    values = {"counted_until": counted, "until": until, "amount": amount_of(saving, saving.since, counted)}
    IdleSaving.objects.filter(pk=saving.pk, until=None).update(**values)
    return until is not None


def amount_of(saving: IdleSaving, start: datetime, end: datetime) -> Decimal:
    """Of the hours [start, end); nothing of a machine whose price nobody knows."""
    if saving.price_per_hour is None or end <= start:
        return Decimal(0)
    return saving.price_per_hour * Decimal(str((end - start).total_seconds())) / SECONDS_PER_HOUR


def _end_earlier(saving: IdleSaving, *, ran_at: datetime) -> None:
    """No hour is saved twice. A run between two stops may have been too short for anybody to see it begin."""
    earlier = IdleSaving.objects.filter(instance=saving.instance_id, until=None).exclude(pk=saving.pk)
    for one in earlier.select_for_update():
        started_at = saving.instance.started_at
        end = started_at if started_at is not None and one.since < started_at < ran_at else ran_at
        end = max(one.since, min(end, one.most_until))
        IdleSaving.objects.filter(pk=one.pk).update(counted_until=end, until=end, amount=amount_of(one, one.since, end))


def _known_to_run_at(stop: IdleStop | None, action: PlannedAction | None, since: datetime) -> datetime:
    """A moment before the new saving at which the machine was on, as far as it is known."""
    if stop is not None:
        return min(stop.quiet_since or stop.began_at, since)
    return min(action.operation.requested_at, since) if action and action.operation else since


def _ended_at(saving: IdleSaving, now: datetime) -> datetime | None:
    """When it was seen to run again, or that what was only stopped is no more; None: it is as it was left."""
    machine = saving.instance
    if machine.gone_at is not None:
        return None if _ended_for_good(saving) else machine.gone_at
    if machine.state in OFF and machine.billing != Billing.FULL:
        return None
    if machine.state_since > saving.since:
        return min(machine.state_since, now)
    return now


def _ended_for_good(saving: IdleSaving) -> bool:
    verb = saving.stop.verb if saving.stop else saving.planned_action.verb if saving.planned_action else ""
    return verb == "terminate"


def _saved_per_hour(machine: Instance, price: Decimal | None) -> Decimal | None:
    """Less what it goes on to cost: disks. None: one of the two is not known, and unknown is no saving."""
    if price is None:
        return None
    if machine.gone_at is not None or machine.billing == Billing.NONE:
        return price
    if machine.storage_price_per_hour is None:
        return price if machine.billing != Billing.STORAGE else None
    return max(price - machine.storage_price_per_hour, Decimal(0))


def _proved_at(machine: Instance, stop: IdleStop | None, action: PlannedAction | None, read_at: datetime) -> datetime:
    ordered_at = stop.ordered_at if stop else action.operation.requested_at if action and action.operation else None
    told = machine.provider_stopped_at or machine.gone_at
    if ordered_at is not None and told is not None and ordered_at <= told <= read_at:
        return told
    return read_at
