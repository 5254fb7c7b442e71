"""What this slice puts into pages of others: the figure of the strip, the badge of the rail, a machine's alerts and its timeline."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone

from fleet.alerts.answering import answer_times
from fleet.alerts.inbox import Wanted, find_alerts
from fleet.alerts.models import Alert, AlertEvent, AlertEventKind, AlertProgress, MaintenanceWindow
from fleet.alerts.tally import severity_counts, tally_of
from fleet.alerts.words import title_of
from fleet.inventory.models import Instance
from fleet.panels import TIMELINE_LIMIT, Context, TimelineEntry
from fleet.teams.access import TeamRequest
from fleet.teams.actor_words import actor_text

MACHINE_LIMIT = 100
WEEK = timedelta(days=7)
WINDOWS_SHOWN = 5
# What the timeline of a machine tells of an alert; the rest is on the alert's own page.
TOLD = (
    AlertEventKind.OPENED,
    AlertEventKind.WORSENED,
    AlertEventKind.ACKNOWLEDGED,
    AlertEventKind.FLAPPING,
    AlertEventKind.RESOLVED,
    AlertEventKind.REOPENED,
)


def open_count(request: TeamRequest) -> int:
    return len(tally_of(request).awake)


def open_alerts(request: TeamRequest) -> Context:
    """The fourth figure. Unknown until the rules have been evaluated once: nothing found is not nothing wrong."""
    tally = tally_of(request)
    progress = AlertProgress.objects.filter(team=request.team).values_list("evaluated_at", flat=True).first()
    return {
        "open": len(tally.awake),
        "severities": severity_counts(tally.awake),
        "at_stake": tally.at_stake,
        "evaluated_at": progress,
        "known": progress is not None or bool(tally.rows),
    }


def machine_alerts(request: TeamRequest, instance: Instance) -> Context | None:
    """The machine's open alerts, snoozed ones last; None when there are none."""
    now = timezone.now()
    found = find_alerts(team=request.team, wanted=Wanted(), now=now).filter(instance=instance)
    snoozed = Alert.objects.filter(instance=instance, closed_at=None, snoozed_at__isnull=False).order_by("opened_at")
    rows = [*found.select_related("instance"), *snoozed.select_related("instance")]
    return {"alerts": [(alert, title_of(alert)) for alert in rows], "instance": instance} if rows else None


def alert_events(request: TeamRequest, instance: Instance | None, since: datetime, until: datetime) -> Context:
    """`instance` None: the newest of the whole team."""
    found = AlertEvent.objects.filter(at__gte=since, at__lt=until, kind__in=TOLD)
    found = found.filter(alert__instance=instance) if instance else found.filter(alert__team=request.team)
    limit = TIMELINE_LIMIT if instance is None else MACHINE_LIMIT
    rows = found.select_related("alert__instance", "alert__account").order_by("-at", "-pk")[:limit]
    return {"entries": [_entry(event) for event in rows]}


def _entry(event: AlertEvent) -> TimelineEntry:
    who = f", {actor_text(event.actor_label)}" if event.actor_label else ""
    return TimelineEntry(
        at=event.at,
        text=title_of(event.alert),
        detail=f"{event.get_kind_display()}{who}",
        mark="" if event.kind == AlertEventKind.RESOLVED else event.severity,
    )


@dataclass(frozen=True, slots=True)
class WeekBar:
    """A window on the bar of the coming seven days, in percent of it."""

    window: MaintenanceWindow
    in_force: bool
    left: str
    width: str

    @classmethod
    def of(cls, window: MaintenanceWindow, start: datetime, now: datetime) -> WeekBar:
        begins, ends = max(window.starts_at, start), min(window.ends_at, start + WEEK)
        share = 100 / WEEK.total_seconds()
        left, width = (begins - start).total_seconds() * share, (ends - begins).total_seconds() * share
        return cls(window, window.in_force(now), f"{left:.1f}", f"{width:.1f}")


def windows_ahead(request: TeamRequest) -> Context:
    """Maintenance of the seven days from today's midnight, in the reader's zone."""
    now = timezone.now()
    start = timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)
    rows = MaintenanceWindow.objects.filter(
        team=request.team, cancelled_at=None, ends_at__gt=now, starts_at__lt=start + WEEK
    ).select_related("instance", "account", "created_by")
    bars = [WeekBar.of(window, start, now) for window in rows.order_by("starts_at")[:WINDOWS_SHOWN]]
    days = [start + timedelta(days=number) for number in range(WEEK.days)]
    return {"bars": bars, "days": days, "open_now": sum(bar.in_force for bar in bars)}


def how_fast(request: TeamRequest) -> Context:
    return {"times": answer_times(team=request.team, now=timezone.now())}
