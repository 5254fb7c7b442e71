"""How fast people answer to alerts, and how fast alerts end: counted from what happened to them in the last 30 days."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from fleet.alerts.models import AlertEventKind, Severity
from fleet.teams.models import Team

SPAN = timedelta(days=30)

# One row a severity. A course lasts from where an alert opened, or opened again, to where it resolved; it counts with its worst severity.
# People can answer from when they were first told. What became part of a larger alert has not ended, and what was put away has not by itself.
_HAPPENED = """\
SELECT e.*, count(*) FILTER (WHERE e.kind IN ('opened', 'reopened', 'flapping')) OVER (PARTITION BY e.alert_id ORDER BY e.at, e.id) AS course
FROM fleet_alertevent e JOIN fleet_alert a ON a.id = e.alert_id
WHERE a.team_id = %(team)s AND a.changed_at >= %(since)s AND e.at >= %(since)s AND e.at < %(until)s
"""
_COURSES = """\
SELECT min(at) AS began,
    min(at) FILTER (WHERE quiet = '' AND NOT kind = ANY(%(acts)s)) AS told,
    min(at) FILTER (WHERE kind = 'acknowledged') AS answered,
    min(at) FILTER (WHERE kind = 'resolved' AND quiet <> 'folded') AS ended,
    bool_or(kind = 'resolved' AND values->>'why' = 'person') AS put_away,
    min(array_position(%(severities)s::text[], severity::text)) AS severity,
    count(*) FILTER (WHERE kind = 'snoozed') AS snoozes,
    count(*) FILTER (WHERE kind = 'woke' AND values->>'why' IN ('worse', 'signal')) AS worse
FROM ({happened}) happened WHERE course > 0 GROUP BY alert_id, course
"""
_ANSWERS = """\
SELECT (%(severities)s::text[])[severity],
    count(*) FILTER (WHERE answered >= told),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY answered - told) FILTER (WHERE answered >= told),
    max(answered - told) FILTER (WHERE answered >= told),
    count(ended),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY ended - began) FILTER (WHERE ended IS NOT NULL),
    max(ended - began),
    count(*) FILTER (WHERE ended IS NOT NULL AND answered IS NULL AND NOT put_away),
    sum(snoozes)::int, sum(worse)::int
FROM ({courses}) courses GROUP BY severity
"""
_ACTS = [AlertEventKind.ACKNOWLEDGED, AlertEventKind.SNOOZED, AlertEventKind.ESCALATED]


@dataclass(frozen=True, slots=True)
class Spread:
    """Of `count` times. None: there were none, which is not at once."""

    count: int = 0
    median: timedelta | None = None
    worst: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Answers:
    """`acknowledged`: since people were told; `resolved`: since it opened; `by_itself`: of those, how many nobody acknowledged or put away."""

    acknowledged: Spread = Spread()
    resolved: Spread = Spread()
    by_itself: int = 0
    snoozed: int = 0
    came_back_worse: int = 0


@dataclass(frozen=True)
class AnswerTimes:
    """Of what opened in [since, until). Severities that had nothing have empty answers."""

    since: datetime
    until: datetime
    by_severity: Mapping[Severity, Answers] = field(default_factory=dict)

    @property
    def resolved(self) -> int:
        return sum(answers.resolved.count for answers in self.by_severity.values())

    @property
    def by_itself(self) -> int:
        return sum(answers.by_itself for answers in self.by_severity.values())

    @property
    def snoozed(self) -> int:
        return sum(answers.snoozed for answers in self.by_severity.values())

    @property
    def came_back_worse(self) -> int:
        return sum(answers.came_back_worse for answers in self.by_severity.values())


def answer_times(*, team: Team, now: datetime) -> AnswerTimes:
    """One query, however much happened."""
    since = now - SPAN
    values: dict[str, Any] = {
        "team": team.pk,
        "since": since,
        "until": now,
        "severities": list(Severity.values),
        "acts": _ACTS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ANSWERS.format(courses=_COURSES.format(happened=_HAPPENED)), values)
        found = {
            Severity(row[0]): Answers(Spread(*row[1:4]), Spread(*row[4:7]), *row[7:10]) for row in cursor.fetchall()
        }
    return AnswerTimes(since, now, {severity: found.get(severity, Answers()) for severity in Severity})
