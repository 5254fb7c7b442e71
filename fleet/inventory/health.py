"""Do the readings of an account arrive? One answer for its row, its page and whoever else asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.inventory.adapters import can
from fleet.inventory.failures import in_readers_language
from fleet.inventory.models import ProviderAccount
from fleet.providers.base import Capability

# Intervals without a complete listing after which its figures count as old.
LATE_AFTER = 3


class Reading(StrEnum):
    TYPED = "typed"
    DISCONNECTED = "disconnected"
    PAUSED = "paused"
    FAILING = "failing"
    WAITING = "waiting"
    LATE = "late"
    DOUBTED = "doubted"
    ARRIVES = "arrives"


WORDS: Mapping[Reading, str | Promise] = {
    Reading.TYPED: _("typed by people, nothing to read"),
    Reading.DISCONNECTED: _("disconnected"),
    Reading.PAUSED: _("reading is paused; its figures grow old"),
    Reading.FAILING: _("reading fails"),
    Reading.WAITING: _("not read yet"),
    Reading.LATE: _("readings are late"),
    Reading.DOUBTED: _("the list is suddenly empty, or most of it is missing"),
    Reading.ARRIVES: _("readings arrive"),
}

# What a person can do about each kind of error.
REMEDIES: Mapping[str, str | Promise] = {
    "auth_failed": _("Make a new key at the provider and put it in here."),
    "scope_missing": _("Give the key this permission at the provider, then verify again."),
    "rate_limited": _(
        "Nothing to do: it waits as long as the provider asks, then reads again. A longer interval helps."
    ),
    "quota_or_funds": _("Look at the balance and the limits of the account at the provider."),
    "invalid": _("Correct the field that it names."),
    "unavailable": _("Nothing to do: it tries again by itself, less and less often."),
    "not_found": _("Look whether the account still exists at the provider."),
}
LATE_REMEDY = _("Is the worker running?")
DOUBTED_REMEDY = _(
    "Look at the permissions of the key, at its project and its regions. Until its machines are listed again, or "
    "somebody says on Cleanup that they are gone, they count as there."
)
OTHER_REMEDY = _("Verify the account; if it stays, look into the log of the worker.")
OWN_REMEDIES: Mapping[Reading, str | Promise] = {Reading.LATE: LATE_REMEDY, Reading.DOUBTED: DOUBTED_REMEDY}


@dataclass(frozen=True, slots=True)
class Health:
    reading: Reading
    words: str
    remedy: str = ""
    detail: str = ""

    @property
    def is_bad(self) -> bool:
        return self.reading in {Reading.FAILING, Reading.LATE, Reading.DOUBTED}


def health_of(account: ProviderAccount, *, now: datetime) -> Health:
    reading = reading_of(account, now=now)
    if reading is not Reading.FAILING:
        return Health(reading, str(WORDS[reading]), str(OWN_REMEDIES.get(reading, "")))
    detail = in_readers_language(account.error_detail) or account.error_kind
    return Health(reading, str(WORDS[reading]), remedy_for(account.error_kind), detail)


def reading_of(account: ProviderAccount, *, now: datetime) -> Reading:
    if account.disconnected_at:
        return Reading.DISCONNECTED
    if not can(account, Capability.LIST):
        return Reading.TYPED
    if not account.enabled:
        return Reading.PAUSED
    if account.failures:
        return Reading.FAILING
    return Reading.WAITING if account.listed_at is None else age_of(account, account.listed_at, now=now)


def age_of(account: ProviderAccount, listed_at: datetime, *, now: datetime) -> Reading:
    late = now - listed_at > LATE_AFTER * timedelta(seconds=account.poll_interval_seconds)
    if late:
        return Reading.LATE
    return Reading.DOUBTED if account.doubted_since else Reading.ARRIVES


def remedy_for(error_kind: str) -> str:
    return str(REMEDIES.get(error_kind, OTHER_REMEDY))
