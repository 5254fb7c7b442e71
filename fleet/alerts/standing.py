"""Every rule as a team has it: the rule's own values, and what the team changed of them."""

from __future__ import annotations

from dataclasses import dataclass

from fleet.alerts.models import Rule, Severity
from fleet.alerts.rule_words import RuleWords, ThresholdWords, rule_words, threshold_words
from fleet.alerts.rules import all_rules, rule_of
from fleet.alerts.rules.base import RuleKind, Threshold
from fleet.teams.models import Team


@dataclass(frozen=True, slots=True)
class Limit:
    """A threshold and its value; `is_own`: the team's, not the rule's."""

    threshold: Threshold
    words: ThresholdWords
    value: float
    is_own: bool

    @property
    def text(self) -> str:
        """What follows "fires when": "a GPU is at 88 °C or above, or slows down for heat"."""
        shown = int(self.value) if self.threshold.is_whole else f"{self.value:g}"
        return str(self.words.says % {"value": shown})


@dataclass(frozen=True, slots=True)
class Standing:
    """`row`: None where the team changed nothing."""

    rule: RuleKind
    row: Rule | None

    @property
    def words(self) -> RuleWords:
        return rule_words(self.rule.kind)

    @property
    def enabled(self) -> bool:
        return self.row.enabled if self.row else True

    @property
    def own_severity(self) -> str | None:
        return self.row.severity if self.row else None

    @property
    def severity(self) -> Severity:
        return Severity(self.own_severity or self.rule.severity)

    @property
    def own_for_seconds(self) -> int | None:
        return self.row.for_seconds if self.row else None

    @property
    def for_seconds(self) -> int:
        return self.rule.for_seconds if self.own_for_seconds is None else self.own_for_seconds

    @property
    def own_thresholds(self) -> dict[str, float]:
        return dict(self.row.thresholds) if self.row else {}

    @property
    def limits(self) -> list[Limit]:
        values, own = self.rule.limits(self.own_thresholds), self.own_thresholds
        return [
            Limit(each, threshold_words(self.rule.kind, each.name), values[each.name], each.name in own)
            for each in self.rule.thresholds
        ]


def standings_of(team: Team) -> list[Standing]:
    """In the order in which the rules list themselves."""
    rows = {row.kind: row for row in Rule.objects.filter(team=team).select_related("changed_by")}
    return [Standing(rule, rows.get(rule.kind)) for rule in all_rules()]


def standing_of(team: Team, kind: str) -> Standing | None:
    """None for a kind that does not exist."""
    rule = rule_of(kind)
    if rule is None:
        return None
    return Standing(rule, Rule.objects.filter(team=team, kind=kind).select_related("changed_by").first())
