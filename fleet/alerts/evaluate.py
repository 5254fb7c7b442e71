"""Evaluates the rules of a team: reads a snapshot, judges it, and brings the team's alerts up to date.

What an evaluation does depends on rows alone, so that one which was killed is made good by the next, and one that runs
twice changes nothing the second time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction

from fleet.alerts.apply import Evaluation
from fleet.alerts.book import Book
from fleet.alerts.escalation import policy_of
from fleet.alerts.judge import Chosen, Judgement, judge
from fleet.alerts.load import load_snapshot
from fleet.alerts.models import AlertEvent, AlertProgress, PendingSignal, Rule
from fleet.alerts.own import evaluation_late
from fleet.alerts.rules import all_rules
from fleet.alerts.snapshot import Trouble
from fleet.teams.models import Team
from fleet.telemetry.ingest.bundle import shipped_version
from fleet.telemetry.rollups.roll import try_lock

# Any number that nothing else locks by.
EVALUATE_LOCK = 0x616C65
# A longer break than this, or a clock that went back, and nobody watched meanwhile.
BREAK = timedelta(seconds=60)


@transaction.atomic
def evaluate_team(*, team: Team, now: datetime, troubles: Sequence[Trouble] = ()) -> list[AlertEvent]:
    """All rules over all of the team's rows. Returns the events that came of it; none where another worker is at it."""
    began = time.monotonic()
    if not try_lock(EVALUATE_LOCK << 32 | team.pk):
        return []
    progress = _progress(team, now)
    snapshot = load_snapshot(
        team=team,
        now=now,
        watching_since=progress.watching_since,
        agent_version=shipped_version(),
        troubles=(*troubles, *evaluation_late(progress.evaluated_at, now)),
    )
    chosen = chosen_rules(team)
    judgement = judge(snapshot, chosen, now)
    book = Book.opened(team=team, now=now)
    Evaluation(book, snapshot, chosen, judgement, policy=policy_of(team), since=progress.evaluated_at).run()
    events = book.write()
    _note_progress(progress, judgement, now, time.monotonic() - began)
    return events


def chosen_rules(team: Team) -> list[Chosen]:
    """Every rule as the team has it."""
    own = {row.kind: row for row in Rule.objects.filter(team=team)}
    return [
        Chosen(
            rule,
            rule.limits(row.thresholds if row else None),
            enabled=row.enabled if row else True,
            severity=(row.severity or "") if row else "",
            for_seconds=rule.for_seconds if row is None or row.for_seconds is None else row.for_seconds,
            changed_at=row.changed_at if row else None,
        )
        for rule in all_rules()
        for row in [own.get(rule.kind)]
    ]


def _progress(team: Team, now: datetime) -> AlertProgress:
    """As the last evaluation left it, with `watching_since` as it is now."""
    progress = AlertProgress.objects.filter(team=team).first()
    if progress is None:
        return AlertProgress(team=team, evaluated_at=now, watching_since=now)
    if not timedelta(0) <= now - progress.evaluated_at <= BREAK:
        progress.watching_since = now
        # What waits since a moment that is now still to come would wait too long.
        PendingSignal.objects.filter(team=team, since__gt=now).update(since=now)
    return progress


def _note_progress(progress: AlertProgress, judgement: Judgement, now: datetime, took_seconds: float) -> None:
    AlertProgress.objects.update_or_create(
        team_id=progress.team_id,
        defaults={
            "evaluated_at": now,
            "watching_since": progress.watching_since,
            "took_seconds": took_seconds,
            "failed": judgement.failed,
        },
    )
