"""What a team changes of its rules."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from fleet.alerts.findings import RANKS
from fleet.alerts.models import Rule
from fleet.alerts.rules import rule_of
from fleet.alerts.rules.base import RuleKind, Threshold
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team

MAX_FOR_SECONDS = 86_400
FIELDS = ("enabled", "severity", "thresholds", "for_seconds")


@transaction.atomic
def update_rule(
    *,
    actor: Actor,
    team: Team,
    kind: str,
    now: datetime,
    enabled: bool,
    severity: str | None = None,
    thresholds: Mapping[str, object] | None = None,
    for_seconds: int | None = None,
) -> Rule:
    """The rule as the team wants it; None and thresholds that are left out are the rule's own again.

    Raises ValidationError by field (a threshold's name is its field); KeyError for a kind that does not exist.
    """
    rule = rule_of(kind)
    if rule is None:
        raise KeyError(kind)
    chosen: dict[str, Any] = {
        "enabled": enabled,
        "severity": severity or None,
        "thresholds": _checked(rule, thresholds or {}),
        "for_seconds": for_seconds,
    }
    if severity and not RANKS.get(severity):
        raise ValidationError({"severity": _("Choose urgent, warning or note.")})
    if for_seconds is not None and not 0 <= for_seconds <= MAX_FOR_SECONDS:
        raise ValidationError({"for_seconds": _("Write a number of seconds between 0 and 86400.")})
    row, _made = Rule.objects.select_for_update().get_or_create(team=team, kind=kind)
    old = {name: getattr(row, name) for name in FIELDS if getattr(row, name) != chosen[name]}
    if not old:
        return row
    for name, value in {**chosen, "changed_at": now, "changed_by": actor.user}.items():
        setattr(row, name, value)
    row.save()
    record(
        actor=actor,
        team=team,
        action="alert_rule.update",
        target=row,
        old=old,
        new={name: chosen[name] for name in old},
    )
    return row


def _checked(rule: RuleKind, given: Mapping[str, object]) -> dict[str, float]:
    """Raises ValidationError naming each threshold that the rule does not have or that lies outside its bounds."""
    known = {threshold.name: threshold for threshold in rule.thresholds}
    wrong: dict[str, Any] = {}
    right: dict[str, float] = {}
    for name, value in given.items():
        threshold = known.get(name)
        if threshold is None:
            wrong[name] = _("This rule has no such threshold.")
        elif (number := _number(value, threshold)) is None:
            wrong[name] = _bounds_text(threshold)
        elif number != threshold.default:
            right[name] = number
    if wrong:
        raise ValidationError(wrong)
    return right


def _bounds_text(threshold: Threshold) -> str:
    bounds = {"low": f"{threshold.low:g}", "high": f"{threshold.high:g}"}
    if threshold.is_whole:
        return _("Write a whole number between %(low)s and %(high)s.") % bounds
    return _("Write a number between %(low)s and %(high)s.") % bounds


def _number(value: object, threshold: Threshold) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]  # whatever was sent: what is no number is caught
    except (TypeError, ValueError):
        return None
    if threshold.is_whole and not number.is_integer():
        return None
    return number if threshold.low <= number <= threshold.high else None
