"""What needs a person: the team's open alerts, worst first, with the money at stake beside each."""

from __future__ import annotations

from datetime import datetime, timedelta

from fleet.alerts.inbox import Wanted, find_alerts
from fleet.alerts.lines import RELATED, load_lines
from fleet.alerts.models import Alert, AlertProgress
from fleet.alerts.tally import tally_of
from fleet.idle.shutdown.models import IdleStop
from fleet.pages.idle.stops import UNDER_WAY
from fleet.panels import Context
from fleet.teams.access import TeamRequest

SHOWN = 8
LATELY = timedelta(days=1)


def attention(request: TeamRequest, now: datetime) -> Context:
    """`looked`: False until the rules were evaluated once; nothing found is not nothing wrong."""
    team, tally = request.team, tally_of(request)
    found = find_alerts(team=team, wanted=Wanted(), now=now).select_related(*RELATED)[:SHOWN]
    return {
        "lines": load_lines(list(found), now=now, reader=request.user),
        "more_alerts": max(0, len(tally.awake) - SHOWN),
        "snoozed": len(tally.snoozed),
        "closed": Alert.objects.filter(team=team, closed_at__gt=now - LATELY).count(),
        "stops_under_way": IdleStop.objects.filter(UNDER_WAY, team=team).count(),
        "looked": bool(tally.rows) or AlertProgress.objects.filter(team=team).exists(),
    }
