"""Planned acts as the page shows them: soonest first, with who was told, what keeps one back, and who may say otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.alerts.planned_acts import error_words
from fleet.idle.leases.ends import LEASE, MAX_AGE
from fleet.idle.planned.people import role_for
from fleet.idle.planned.words import waits_words
from fleet.inventory.machines import holds_in_force
from fleet.inventory.models import Hold
from fleet.inventory.plans.actions import ended_words
from fleet.inventory.plans.models import STANDING, PlannedAction, PlannedActionState, PlannedActionVerb
from fleet.inventory.plans.reasons import kind_of, reason_text
from fleet.teams.access import TeamRequest

SHOWN, ENDED_SHOWN = 200, 30
# Farther away, a countdown says less than a date.
COUNTS_DOWN = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Line:
    action: PlannedAction
    now: datetime
    reason: str
    may_change: bool
    hold: Hold | None = None

    @property
    def seconds_left(self) -> int | None:
        left = self.action.due_at - self.now
        return max(int(left.total_seconds()), 0) if left <= COUNTS_DOWN and self.is_planned else None

    @property
    def is_planned(self) -> bool:
        return self.action.state == PlannedActionState.PLANNED

    @property
    def has_failed(self) -> bool:
        return self.action.state == PlannedActionState.FAILED

    @property
    def needs_telling(self) -> bool:
        return self.action.verb != PlannedActionVerb.START

    @property
    def waits(self) -> str:
        """A hold stands beside it with its own words."""
        code = self.action.waits_for
        return waits_words(code) if code and not (code == "held" and self.hold) else ""

    @property
    def error(self) -> str:
        return error_words(self.action.error_kind, self.action.error_detail) if self.has_failed else ""

    @property
    def ended(self) -> str:
        return ended_words(self.action)

    @property
    def can_extend(self) -> bool:
        return kind_of(self.action.source) in (LEASE, MAX_AGE)


def lines_of(request: TeamRequest, now: datetime) -> tuple[list[Line], list[Line]]:
    """What is to come or under way, and what ended lately."""
    rows = PlannedAction.objects.filter(team=request.team).select_related(
        "team", "instance__owner", "planned_by", "ended_by", "operation"
    )
    open_states = (*STANDING, PlannedActionState.TAKEN)
    ahead = list(rows.filter(state__in=open_states).order_by("due_at", "pk")[:SHOWN])
    ended = list(rows.exclude(state__in=open_states).order_by("-ended_at", "-pk")[:ENDED_SHOWN])
    holds = holds_of(ahead, now)
    return [line_of(request, one, now, holds) for one in ahead], [line_of(request, one, now, {}) for one in ended]


def line_of(request: TeamRequest, action: PlannedAction, now: datetime, holds: Mapping[int, Hold]) -> Line:
    may = action.is_standing and request.membership.can(role_for(action))
    hold = holds.get(action.instance_id) if action.verb != PlannedActionVerb.START else None
    return Line(action, now, reason_text(action), may, hold)


def holds_of(actions: Iterable[PlannedAction], now: datetime) -> dict[int, Hold]:
    """Of each machine the hold that lasts longest; one without an end before all."""
    found: dict[int, Hold] = {}
    machines = {action.instance_id for action in actions}
    for hold in holds_in_force(now=now).filter(instance__in=machines).select_related("owner"):
        known = found.get(hold.instance_id)
        if known is None or _lasts(hold) > _lasts(known):
            found[hold.instance_id] = hold
    return found


def _lasts(hold: Hold) -> tuple[bool, float]:
    return hold.expires_at is None, hold.expires_at.timestamp() if hold.expires_at else 0.0
