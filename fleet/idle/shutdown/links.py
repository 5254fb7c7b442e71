"""What the links in messages about a stop do: keep the machine for some hours, or say that it must not be stopped."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.alerts.channels.acting import LinkAct, hours_on, register_acts, tomorrow_morning
from fleet.alerts.models import Alert
from fleet.idle.shutdown.models import IdleStop
from fleet.idle.shutdown.people import LONGEST_SNOOZE, snooze_stop, veto_stop
from fleet.idle.shutdown.telling import FAILED, WARNED
from fleet.teams.audit import Actor

Until = Callable[[datetime, ZoneInfo], datetime]
KEPT = gettext_lazy("It is kept. If it is still idle after that, there is a new warning before anything is stopped.")


def stop_of(alert: Alert) -> IdleStop | None:
    kind, _colon, pk = alert.subject.partition(":")
    if kind != "idle_stop" or not pk.isdecimal():
        return None
    return IdleStop.objects.filter(pk=int(pk), team=alert.team_id).first()


def _keeping(until: Until) -> Callable[[Actor, Alert, datetime, ZoneInfo], bool]:
    def keep(actor: Actor, alert: Alert, now: datetime, zone: ZoneInfo) -> bool:
        stop = stop_of(alert)
        # On the night of a clock change tomorrow's nine o'clock may be more than a day away.
        end = min(until(now, zone), now + LONGEST_SNOOZE)
        return stop is not None and snooze_stop(actor=actor, stop=stop, until=end, now=now)

    return keep


def _forbid(actor: Actor, alert: Alert, now: datetime, _zone: ZoneInfo) -> bool:
    stop = stop_of(alert)
    return stop is not None and veto_stop(actor=actor, stop=stop, reason=_("said in answer to the warning"), now=now)


ACTS = (
    LinkAct("keep_1h", gettext_lazy("Keep it 1 hour"), KEPT, _keeping(hours_on(1))),
    LinkAct("keep_4h", gettext_lazy("Keep it 4 hours"), KEPT, _keeping(hours_on(4))),
    LinkAct("keep_tomorrow", gettext_lazy("Keep it until tomorrow, 09:00"), KEPT, _keeping(tomorrow_morning)),
    LinkAct(
        "veto",
        gettext_lazy("Don't stop it"),
        gettext_lazy("It is not stopped: a hold keeps it for a week, or until somebody releases it."),
        _forbid,
    ),
)


def register() -> None:
    for cause in (WARNED, FAILED):
        register_acts(cause, ACTS)
