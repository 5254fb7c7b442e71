"""What stops saved: of a month in all, and stop by stop with what it is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.utils import timezone
from django.utils.translation import gettext as _

from fleet.costs.month import Month
from fleet.formats import duration_text, money_text
from fleet.idle.savings.booking import amount_of
from fleet.idle.savings.reading import savings_of
from fleet.idle.shutdown.models import IdleSaving, IdleStop, IdleStopStage
from fleet.panels import Context
from fleet.teams.access import TeamRequest
from fleet.teams.models import Team

LINES_SHOWN = 12
HOUR_SECONDS = 3600


@dataclass(frozen=True)
class Line:
    """One stop's saving within a month."""

    saving: IdleSaving
    amount: Decimal
    seconds: float

    @property
    def grows(self) -> bool:
        return self.saving.until is None

    @property
    def is_capped(self) -> bool:
        """It has grown for as long as a saving may; the machine may be off still."""
        return self.saving.until is not None and self.saving.until >= self.saving.most_until

    @property
    def by(self) -> str:
        """Which policy or plan it was stopped by."""
        if self.saving.stop is not None:
            return self.saving.stop.policy_name
        return _("as planned")

    @property
    def against(self) -> str:
        """The other course that the saving is reckoned against, said plainly."""
        lasted = duration_text(self.seconds)
        if self.saving.price_per_hour is None:
            return _("off for %(time)s; what an hour would have cost is not known") % {"time": lasted}
        price = money_text(self.saving.price_per_hour, self.saving.currency)
        return _("off for %(time)s that would have cost %(price)s an hour") % {"time": lasted, "price": price}


@dataclass(frozen=True)
class Saved:
    month: Month
    lines: list[Line]
    failed: int
    cancelled: int

    @property
    def amounts(self) -> dict[str, Decimal]:
        sums: dict[str, Decimal] = {}
        for line in self.lines:
            currency = line.saving.currency
            sums[currency] = sums.get(currency, Decimal(0)) + line.amount
        return sums

    @property
    def gpu_hours(self) -> float:
        return sum(line.seconds * (line.saving.gpu_count or 0) for line in self.lines) / HOUR_SECONDS

    @property
    def unpriced(self) -> int:
        return sum(line.saving.price_per_hour is None for line in self.lines)

    @property
    def shown(self) -> list[Line]:
        return self.lines[:LINES_SHOWN]

    @property
    def more(self) -> int:
        return max(0, len(self.lines) - LINES_SHOWN)


def saved_in(team: Team, month: Month) -> Saved:
    """The dearest first."""
    start, end = month.begins_at, month.ends_at
    rows = savings_of(team, start, end).select_related("instance__project", "stop", "planned_action")
    lines = [line_of(row, start, end) for row in rows if row.counted_until > start]
    lines.sort(key=lambda line: (-line.amount, line.saving.instance.name))
    ended = IdleStop.objects.filter(team=team, began_at__gte=start, began_at__lt=end)
    stages = list(ended.values_list("stage", flat=True))
    return Saved(month, lines, stages.count(IdleStopStage.FAILED), stages.count(IdleStopStage.CANCELLED))


def line_of(saving: IdleSaving, start: datetime, end: datetime) -> Line:
    since, until = max(saving.since, start), min(saving.counted_until, end)
    return Line(saving, amount_of(saving, since, until), (until - since).total_seconds())


def month_saved(team: Team, *, now: datetime) -> Saved:
    return saved_in(team, Month.of(team, now=now))


def saved_by_stopping(request: TeamRequest, month: Month) -> Context | None:
    """The section of the page of costs; None where nothing was ever stopped here."""
    saved = saved_in(request.team, month)
    if not saved.lines and not IdleSaving.objects.filter(team=request.team).exists():
        return None
    return {"saved": saved, "month": month, "now": timezone.now()}
