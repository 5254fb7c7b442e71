"""Asks providers for their bills: once a day, or when somebody wants it now; some days at a time, so that no asking takes long."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from django.db import transaction
from django.utils import timezone

from fleet.costs.bills.models import Bill
from fleet.costs.bills.taking import Found, first_of_month, take_bill
from fleet.inventory.adapters import can
from fleet.inventory.failures import TOOK_TOO_LONG
from fleet.inventory.models import ProviderAccount
from fleet.inventory.provider_word.models import ProviderReading
from fleet.inventory.provider_word.reading import Keys, Subject
from fleet.providers.base import BilledCharge, Capability, Provider, TellsCharges
from fleet.providers.errors import Unavailable
from fleet.teams.audit import Actor, record

NAME = "charges"
ONE_DAY = timedelta(days=1)
# Providers correct what they told by some days.
AGAIN = timedelta(days=4)
# As many as fit into one reading where each day is asked for by itself.
AT_ONCE = timedelta(days=14)
SOON = timedelta(minutes=1)
MOST_CHARGES = 500_000


@dataclass(frozen=True, slots=True)
class Answer:
    start: datetime
    end: datetime
    charges: tuple[BilledCharge, ...]


def read_charges(account: ProviderAccount, adapter: Provider, _machines: Keys, deadline: float) -> list[Answer]:
    start, end = window_of(account, timezone.now())
    charges: list[BilledCharge] = []
    for charge in cast(TellsCharges, adapter).charges(start, end):
        charges.append(charge)
        if time.monotonic() > deadline:
            raise Unavailable(TOOK_TOO_LONG)
        if len(charges) > MOST_CHARGES:
            raise Unavailable(f"The bill has more than {MOST_CHARGES} lines.")
    return [Answer(start, end, tuple(charges))]


def window_of(account: ProviderAccount, now: datetime) -> tuple[datetime, datetime]:
    """From some days before what was read last, at first from the beginning of the month before, up to this morning of UTC."""
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    first = first_of_month(first_of_month(now) - ONE_DAY)
    read = Bill.objects.filter(account=account, source="api").order_by("-ends_at").values_list("ends_at", flat=True)
    start = max(first, read[0] - AGAIN) if read else first
    return start, min(start + AT_ONCE, max(today, start + ONE_DAY))


def keep_charges(account: ProviderAccount, _machines: Keys, told: Sequence[Answer], now: datetime) -> int:
    """How many lines. Asks again soon where the present is not reached."""
    for answer in told:
        found = Found("api", answer.charges, answer.start, answer.end)
        take_bill(actor=Actor.system("bills"), account=account, found=found, now=now)
        if answer.end < now.replace(hour=0, minute=0, second=0, microsecond=0):
            ProviderReading.objects.filter(account=account, subject=NAME).update(next_at=now + SOON)
    return sum(len(answer.charges) for answer in told)


CHARGES = Subject(NAME, Capability.COSTS, int(ONE_DAY.total_seconds()), read_charges, keep_charges)


@transaction.atomic
def ask_for_bill(*, actor: Actor, account: ProviderAccount, now: datetime) -> bool:
    """Due at once. False where the provider has no bill to ask for."""
    if not can(account, Capability.COSTS) or account.disconnected_at is not None:
        return False
    ProviderReading.objects.update_or_create(account=account, subject=NAME, defaults={"next_at": now})
    record(actor=actor, team=account.team, action="bill.ask", target=account)
    return True
