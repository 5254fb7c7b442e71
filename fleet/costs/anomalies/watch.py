"""Holds a team's money against the rules, and opens and clears alerts by what they find."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.models import Alert
from fleet.costs.anomalies.load import load_facts
from fleet.costs.anomalies.rules.base import Anomaly, Facts
from fleet.costs.anomalies.standing import Standing, standings_of
from fleet.inventory.models import Instance
from fleet.teams.models import Team


@dataclass(slots=True)
class Watch:
    """One look at one team. `facts` None: nothing is counted yet."""

    team: Team
    now: datetime
    facts: Facts | None
    opened: int = 0
    cleared: int = 0

    def hold(self, standing: Standing, is_open: Collection[str]) -> None:
        """Against one rule. Without evidence what is open stays open."""
        rule = standing.rule
        if not standing.enabled:
            self._clear(rule.cause, is_open, why="rule_off")
            return
        looked = rule.look(self.facts, standing.limits, is_open) if self.facts else None
        if looked is None:
            return
        for one in looked:
            self._raise(standing, one)
        found = {one.subject for one in looked}
        self.opened += len(found - set(is_open))
        self._clear(rule.cause, set(is_open) - found, why="evidence")

    def _clear(self, cause: str, subjects: Collection[str], *, why: str) -> None:
        for subject in sorted(subjects):
            clear_event(team=self.team, cause=cause, subject=subject, now=self.now, why=why)
            self.cleared += 1

    def _raise(self, standing: Standing, one: Anomaly) -> None:
        team, machine = self.team, None
        if one.instance is not None:
            machine = Instance.objects.filter(team=team, pk=one.instance).first()
        raise_event(
            team=team,
            cause=standing.rule.cause,
            subject=one.subject,
            severity=standing.rule.severity,
            now=self.now,
            instance=machine,
            values={**one.values, "currency": team.currency},
            signal=standing.kind,
            price_per_hour=one.per_hour,
            currency=team.currency,
        )


def watch_money(*, team: Team, now: datetime) -> Watch:
    """Idempotent: what it does depends on rows alone. A rule that is switched off closes what it had opened."""
    standings = standings_of(team)
    is_open = open_by_cause(team, [one.rule.cause for one in standings])
    watch = Watch(team, now, load_facts(team=team, now=now))
    for standing in standings:
        watch.hold(standing, is_open[standing.rule.cause])
    return watch


def open_by_cause(team: Team, causes: Collection[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    rows = Alert.objects.filter(team=team, cause__in=causes, closed_at=None).values_list("cause", "subject")
    for cause, subject in rows:
        found[cause].add(subject)
    return found
