"""Stops as the page shows them: under way with a countdown, resting after somebody's word, and what is planned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property

from django.db.models import F, Q

from fleet.idle.planned.people import role_for
from fleet.idle.planned.words import waits_words
from fleet.idle.shutdown.course import STOPPABLE
from fleet.idle.shutdown.models import OPEN, IdleStop, IdleStopStage
from fleet.idle.shutdown.words import why_words
from fleet.inventory.models import Instance
from fleet.inventory.operations.words import Consequences, consequences
from fleet.inventory.plans.models import STANDING, PlannedAction, PlannedActionState
from fleet.inventory.plans.reasons import reason_text as planned_reason
from fleet.providers.errors import Invalid
from fleet.teams.models import Membership, Team

# A course that only watches has told nobody yet.
UNDER_WAY = OPEN & ~Q(stage=IdleStopStage.WATCHING)
RELATED = ("instance__account", "instance__owner", "instance__project", "policy")
# Not done yet: also what is being carried out, and what failed and is tried again.
AHEAD = (*STANDING, PlannedActionState.TAKEN)
PLANNED_SHOWN = 8
RESTING_SHOWN = 8
CALLED_OFF_SHOWN = 8
CALLED_OFF_SPAN = timedelta(days=7)
HOUR_SECONDS = 3600
# A countdown in seconds makes sense for a day; beyond it stands the day.
COUNTED_SECONDS = 24 * HOUR_SECONDS


@dataclass(frozen=True)
class UnderWay:
    """One stop that somebody was told of, or that is being ordered, proved or tried again."""

    stop: IdleStop
    at: datetime

    @property
    def can_be_stopped(self) -> bool:
        """Whether a person's word still changes it: until the provider is asked, and again once it did not follow."""
        return self.stop.stage in STOPPABLE or self.has_failed

    @property
    def seconds_left(self) -> int | None:
        """To the stop; None where nothing is counted down."""
        if self.stop.stage != IdleStopStage.GRACE or self.stop.deadline is None:
            return None
        return max(0, round((self.stop.deadline - self.at).total_seconds()))

    @property
    def has_failed(self) -> bool:
        return self.stop.stage == IdleStopStage.FAILED

    @cached_property
    def told(self) -> Consequences | None:
        """What the act saves, loses and keeps; None where the account's adapter is not installed here."""
        try:
            return consequences(self.stop.instance, self.stop.verb)
        except Invalid:
            return None

    @property
    def saves(self) -> Decimal | None:
        return self.told.saved if self.told else None

    @property
    def burnt(self) -> Decimal | None:
        """Since the first order, which the provider has not been seen to follow. None: the price is not known."""
        if self.stop.price_per_hour is None or self.stop.ordered_at is None:
            return None
        return hours_money(self.stop.price_per_hour, self.at - self.stop.ordered_at)

    def costs(self, hours: int) -> Decimal | None:
        """What waiting so long costs."""
        return None if self.saves is None else self.saves * hours

    @property
    def hour_costs(self) -> Decimal | None:
        return self.costs(1)


def hours_money(price_per_hour: Decimal, lasted: timedelta) -> Decimal:
    return price_per_hour * Decimal(round(lasted.total_seconds())) / HOUR_SECONDS


def under_way(team: Team, *, now: datetime) -> list[UnderWay]:
    """What failed first, then what stops soonest."""
    rows = IdleStop.objects.filter(UNDER_WAY, team=team).select_related(*RELATED)
    shown = [UnderWay(stop, now) for stop in rows.order_by(F("deadline").asc(nulls_last=True), "began_at")]
    return sorted(shown, key=lambda one: not one.has_failed)


@dataclass(frozen=True, slots=True)
class Resting:
    """A machine that is left alone for a while, because somebody or something spoke against its stop."""

    stop: IdleStop
    why: str

    @property
    def until(self) -> datetime | None:
        return self.stop.rests_until


def resting(team: Team, *, now: datetime) -> list[Resting]:
    """Of each machine the newest, unless a new course has begun since."""
    rows = IdleStop.objects.filter(team=team, rests_until__gt=now, instance__gone_at=None).select_related(*RELATED)
    busy = IdleStop.objects.filter(UNDER_WAY, team=team).values("instance_id")
    newest = rows.exclude(instance__in=busy).order_by("instance_id", "-began_at").distinct("instance_id")
    found = sorted(newest, key=lambda stop: stop.rests_until or now)
    return [Resting(stop, why_words(stop.why)) for stop in found[:RESTING_SHOWN]]


def called_off(team: Team, *, now: datetime) -> list[Resting]:
    """Lately, and why; the newest first."""
    rows = IdleStop.objects.filter(
        team=team, stage=IdleStopStage.CANCELLED, ended_at__gt=now - CALLED_OFF_SPAN
    ).select_related(*RELATED)
    return [Resting(stop, why_words(stop.why)) for stop in rows.order_by("-ended_at")[:CALLED_OFF_SHOWN]]


@dataclass(frozen=True)
class Planned:
    """`may_change`: whether the reader has a word on it, and a word still counts."""

    action: PlannedAction
    at: datetime
    may_change: bool

    @property
    def reason(self) -> str:
        return planned_reason(self.action)

    @property
    def seconds_left(self) -> int | None:
        left = round((self.action.due_at - self.at).total_seconds())
        return max(0, left) if left < COUNTED_SECONDS else None

    @property
    def waits_for(self) -> str:
        """What keeps it back; "" for nothing."""
        return waits_words(self.action.waits_for) if self.action.waits_for else ""

    @cached_property
    def saves(self) -> Decimal | None:
        try:
            return consequences(self.action.instance, self.action.verb).saved
        except Invalid:
            return None


def planned_acts(reader: Membership, *, now: datetime, instance: Instance | None = None) -> list[Planned]:
    """Of the team, or of one machine; the next first."""
    rows = PlannedAction.objects.filter(team=reader.team_id, state__in=AHEAD)
    rows = rows.filter(instance=instance) if instance else rows
    rows = rows.select_related("instance__account", "instance__owner").order_by("due_at", "pk")
    return [Planned(action, now, action.is_standing and reader.can(role_for(action))) for action in rows]


def back_an_hour(stops: Sequence[UnderWay], plans: Iterable[Planned]) -> dict[str, Decimal]:
    """What an hour costs less once all of it is done, by currency; what starts a machine is no saving."""
    sums: dict[str, Decimal] = {}
    found = [(one.stop.instance.currency, one.saves) for one in stops]
    found += [(one.action.instance.currency, one.saves) for one in plans]
    for currency, saves in found:
        if saves is not None and saves > 0:
            sums[currency] = sums.get(currency, Decimal(0)) + saves
    return sums
