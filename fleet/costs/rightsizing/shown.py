"""Suggestions as pages show them, in as many queries whatever the fleet's size."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import Q, QuerySet, Sum
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.costs.rightsizing.models import RightSizing
from fleet.costs.rightsizing.sizing.figures import Kind, Loses, Why
from fleet.costs.rightsizing.words import (
    change_words,
    losses_words,
    measured_words,
    place_words,
    why_words,
)
from fleet.formats import whole_money_text
from fleet.inventory.models import Hold
from fleet.teams.models import Team

# What tells a reader more about the machine than about our readings goes first.
TELLING = (Why.MEMORY, Why.BUSY, Why.GPUS, Why.LINKS, Why.SLOWER, Why.HOST, Why.INTERRUPTS)


@dataclass(frozen=True, slots=True)
class Other:
    what: str
    where: str
    saving: Decimal
    losses: str


@dataclass(frozen=True, slots=True)
class Line:
    """One suggestion. `held`: the reason of what keeps the machine as it is now, "" where nothing does."""

    row: RightSizing
    seen: str
    what: str
    where: str
    price_before: Decimal
    price_after: Decimal
    hours: str
    losses: str
    others: list[Other]
    held: str

    @classmethod
    def of(cls, row: RightSizing, held: str) -> Line:
        change = row.change
        before, after = change["hours_before"], change["hours_after"]
        told = {"before": _hours(before), "after": _hours(after)}
        return cls(
            row,
            measured_words(row.measured, fewer=row.kind == Kind.FEWER),
            change_words(row.measured, change),
            place_words(change),
            Decimal(change["price_before"]),
            Decimal(change["price_after"]),
            _("%(before)s h") % told if before == after else _("%(before)s h before, %(after)s h after") % told,
            losses_words(change["losses"]),
            [_other(row.measured, one) for one in row.others],
            held,
        )


def _hours(text: str) -> str:
    return f"{Decimal(text):,.0f}"


def _other(measured: dict[str, Any], change: dict[str, Any]) -> Other:
    return Other(
        change_words(measured, change),
        place_words(change),
        Decimal(change["saving"]),
        # That it is a new machine is said of the first.
        losses_words([loss for loss in change["losses"] if loss["code"] != Loses.NEW_MACHINE]),
    )


def rows_of(team: Team) -> QuerySet[RightSizing]:
    return RightSizing.objects.filter(team=team, instance__gone_at=None).select_related("instance", "dismissed_by")


def open_rows(team: Team) -> QuerySet[RightSizing]:
    return rows_of(team).filter(dismissed_at=None).exclude(kind="").order_by("-saving_per_month", "pk")


def lines_of(rows: Iterable[RightSizing]) -> list[Line]:
    """One query for what holds the machines."""
    found = list(rows)
    held = held_words([row.instance_id for row in found])
    return [Line.of(row, held.get(row.instance_id, "")) for row in found]


def held_words(instance_ids: list[int]) -> dict[int, str]:
    """By machine, why it is held: a change has to wait for that, or to be agreed."""
    holds = Hold.objects.filter(Q(expires_at=None) | Q(expires_at__gt=timezone.now()), instance__in=instance_ids)
    rows = holds.filter(ended_at=None).select_related("owner").order_by("started_at")
    return {row.instance_id: _hold(row) for row in rows}


def _hold(row: Hold) -> str:
    who = row.owner.display_name if row.owner else row.get_kind_display()
    return f"{who}: {row.reason}" if row.reason else str(who)


@dataclass(frozen=True, slots=True)
class Total:
    count: int
    saving: Decimal
    currency: str
    looked_at: datetime | None

    @property
    def headline(self) -> str:
        if not self.count:
            return _("No machine is larger than its work")
        text = ngettext(
            "One smaller or cheaper machine would do: %(money)s a month",
            "%(n)d smaller or cheaper machines would do: %(money)s a month",
            self.count,
        )
        return text % {"n": self.count, "money": whole_money_text(self.saving, self.currency)}


def total_of(team: Team) -> Total:
    """Two queries. In the currency that the last look reckoned in."""
    newest = rows_of(team).order_by("-looked_at").first()
    sums = open_rows(team).order_by().aggregate(saving=Sum("saving_per_month"))
    count = open_rows(team).count() if sums["saving"] else 0
    return Total(
        count,
        sums["saving"] or Decimal(0),
        newest.currency if newest else team.currency,
        newest.looked_at if newest else None,
    )


@dataclass(frozen=True, slots=True)
class Alone:
    """A machine that is left alone, and why in brackets."""

    pk: int
    name: str
    why: str


def left_alone(team: Team, most: int) -> list[Alone]:
    """Those whose reason says most of the machine first, then by name."""
    rows = list(_alone(team, TELLING)[:most])
    rows += list(_alone(team, tuple(why for why in Why if why not in TELLING))[: most - len(rows)])
    return [Alone(row.instance_id, row.instance.name, why_words(row.why, row.told)) for row in rows]


def _alone(team: Team, whys: tuple[Why, ...]) -> QuerySet[RightSizing]:
    return rows_of(team).filter(why__in=whys).exclude(why=Why.OFF).order_by("instance__name", "pk")
