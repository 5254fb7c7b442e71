"""Every rule as a team has it, and what a team changes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from fleet.alerts.rules.base import Threshold
from fleet.costs.anomalies.models import AnomalyRule
from fleet.costs.anomalies.rules import all_rules, rule_of
from fleet.costs.anomalies.rules.base import AnomalyKind
from fleet.teams.audit import Actor, record
from fleet.teams.models import Team


@dataclass(frozen=True, slots=True)
class Standing:
    """`row`: None where the team changed nothing."""

    rule: AnomalyKind
    row: AnomalyRule | None

    @property
    def kind(self) -> str:
        return self.rule.kind

    @property
    def enabled(self) -> bool:
        return self.row.enabled if self.row else True

    @property
    def own(self) -> dict[str, float]:
        return dict(self.row.thresholds) if self.row else {}

    @property
    def limits(self) -> dict[str, float]:
        return self.rule.limits(self.own)


def standings_of(team: Team) -> list[Standing]:
    rows = {row.kind: row for row in AnomalyRule.objects.filter(team=team).select_related("changed_by")}
    return [Standing(rule, rows.get(rule.kind)) for rule in all_rules()]


def standing_of(team: Team, kind: str) -> Standing | None:
    """None for a kind that does not exist."""
    return next((one for one in standings_of(team) if one.kind == kind), None)


@transaction.atomic
def update_anomaly_rule(
    *, actor: Actor, team: Team, kind: str, now: datetime, enabled: bool, thresholds: Mapping[str, object]
) -> AnomalyRule:
    """The rule as the team wants it; thresholds that are left out are the rule's own again.

    Raises ValidationError by field (a threshold's name is its field); KeyError for a kind that does not exist.
    """
    rule = rule_of(kind)
    if rule is None:
        raise KeyError(kind)
    chosen = {"enabled": enabled, "thresholds": checked(rule, thresholds)}
    row, _made = AnomalyRule.objects.select_for_update().get_or_create(team=team, kind=kind)
    old = {name: getattr(row, name) for name, value in chosen.items() if getattr(row, name) != value}
    if not old:
        return row
    row.enabled, row.thresholds = enabled, chosen["thresholds"]
    row.changed_at, row.changed_by = now, actor.user
    row.save()
    new = {name: chosen[name] for name in old}
    record(actor=actor, team=team, action="anomaly_rule.update", target=row, old=old, new=new)
    return row


def checked(rule: AnomalyKind, given: Mapping[str, object]) -> dict[str, float]:
    known = {one.name: one for one in rule.thresholds}
    wrong = {name: _("This rule has no such threshold.") for name in given if name not in known}
    right: dict[str, float] = {}
    for name, threshold in known.items():
        if name not in given:
            continue
        number = number_within(given[name], threshold)
        if number is None:
            bounds = {"low": f"{threshold.low:g}", "high": f"{threshold.high:.10g}"}
            wrong[name] = _("Write a number between %(low)s and %(high)s.") % bounds
        elif number != threshold.default:
            right[name] = number
    if wrong:
        raise ValidationError(wrong)
    return right


def number_within(value: object, threshold: Threshold) -> float | None:
    try:
        number = float(value)  # type: ignore[arg-type]  # whatever was sent: what is no number is caught
    except (TypeError, ValueError):
        return None
    return number if threshold.low <= number <= threshold.high else None
