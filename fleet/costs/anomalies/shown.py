"""The rules about unusual money as the page and the API show them: open ones, thresholds, what would have fired, and what has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fleet.alerts.models import Alert
from fleet.alerts.rule_words import RuleWords
from fleet.alerts.words import closed_words, title_of, why_of
from fleet.costs.anomalies.load import load_facts
from fleet.costs.anomalies.lookback import Fired, would_have_fired
from fleet.costs.anomalies.rules import all_rules
from fleet.costs.anomalies.rules.base import Facts
from fleet.costs.anomalies.standing import Standing, standings_of
from fleet.costs.anomalies.words import RULE_WORDS, fired_text, threshold_text
from fleet.teams.models import Team

NOTHING_KNOWN = Fired(0, (), 0)
HISTORY = timedelta(days=90)
MOST_PAST = 50


@dataclass(frozen=True, slots=True)
class Limit:
    name: str
    value: float
    text: str
    is_own: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """One rule of a team."""

    standing: Standing
    words: RuleWords
    limits: tuple[Limit, ...]
    fired: Fired

    @property
    def fired_text(self) -> str:
        return fired_text(self.fired)


@dataclass(frozen=True, slots=True)
class Line:
    """One alert in words."""

    alert: Alert
    title: str
    why: str
    ended: str

    @classmethod
    def of(cls, alert: Alert) -> Line:
        return cls(alert, title_of(alert), why_of(alert), "" if alert.is_open else closed_words(alert))


def shown_rules(*, team: Team, now: datetime) -> list[Shown]:
    facts = load_facts(team=team, now=now, look_back=True)
    return [shown(standing, facts, team.currency) for standing in standings_of(team)]


def shown(standing: Standing, facts: Facts | None, currency: str) -> Shown:
    kind, own = standing.kind, standing.own
    limits = tuple(
        Limit(name, value, threshold_text(kind, name, value, currency), name in own)
        for name, value in standing.limits.items()
    )
    return Shown(standing, RULE_WORDS[kind], limits, fired_with(standing, facts, standing.limits))


def fired_with(standing: Standing, facts: Facts | None, limits: dict[str, float]) -> Fired:
    return would_have_fired(standing.rule, facts, limits) if facts else NOTHING_KNOWN


def anomalies_of(*, team: Team, now: datetime) -> tuple[Sequence[Alert], Sequence[Alert]]:
    """Those that are open, and those that ended in the last 90 days, the newest first."""
    causes = [rule.cause for rule in all_rules()]
    rows = Alert.objects.filter(team=team, cause__in=causes).select_related("instance", "account")
    past = rows.filter(closed_at__gte=now - HISTORY).order_by("-closed_at")[:MOST_PAST]
    return list(rows.filter(closed_at=None).order_by("-opened_at")), list(past)
