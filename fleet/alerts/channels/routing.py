"""Who hears of which event: the deliveries that are written in its transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo, available_timezones

from django.db import transaction
from django.db.models import Prefetch

from fleet.alerts.channels.models import Channel, Delivery, DeliveryState, Digest, Route
from fleet.alerts.channels.senders.base import ASKING
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.channels.timing import Hours
from fleet.alerts.models import AlertEvent, AlertEventKind, Severity
from fleet.inventory.models import Instance
from fleet.teams.models import Project

Kind = AlertEventKind
# News of something that was told before; whoever was not told of it needs no such news.
SEQUELS = frozenset({Kind.ACKNOWLEDGED, Kind.SNOOZED, Kind.IMPROVED, Kind.RESOLVED})
BATCH = 2_000
ZONES = available_timezones()


@dataclass(frozen=True)
class Listeners:
    """All that is needed to route some events, read in a constant number of queries."""

    routes: dict[int, list[Route]]
    projects: dict[int, int | None]
    told: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, events: Sequence[AlertEvent]) -> Listeners:
        alerts = {event.alert_id: event.alert for event in events}
        routes: dict[int, list[Route]] = {}
        rows = Route.objects.filter(
            channel__team__in={alert.team_id for alert in alerts.values()}, channel__enabled=True
        )
        chosen = Prefetch("projects", Project.objects.only("pk"))
        for route in rows.select_related("channel__owner").prefetch_related(chosen).order_by("pk"):
            routes.setdefault(route.channel.team_id, []).append(route)
        if not routes:
            return cls({}, {}, frozenset())
        told = Delivery.objects.filter(alert__in=alerts).exclude(state=DeliveryState.SUPPRESSED)
        machines = {alert.instance_id for alert in alerts.values() if alert.instance_id}
        return cls(
            routes,
            dict(Instance.objects.filter(pk__in=machines).values_list("pk", "project_id")),
            frozenset(told.values_list("channel_id", "alert_id").distinct()),
        )

    def of_event(self, event: AlertEvent) -> list[Route]:
        """One route a channel: the first that wants it."""
        chosen: dict[int, Route] = {}
        for route in self.routes.get(event.alert.team_id, ()):
            if route.channel_id not in chosen and self._is_for(route, event) and self.wants(route, event):
                chosen[route.channel_id] = route
        return list(chosen.values())

    def _is_for(self, route: Route, event: AlertEvent) -> bool:
        """What is kept quiet is for nobody; but an incident that was opened elsewhere has to end there, which calls nobody."""
        sender = SENDERS.get(route.channel.kind)
        if sender is None or sender.gathers:
            return not event.quiet
        return not event.quiet or event.kind == Kind.RESOLVED

    def wants(self, route: Route, event: AlertEvent) -> bool:
        if event.actor_id is not None and event.actor_id == route.channel.owner_id:
            return False
        if is_escalated_to(route.channel, event):
            return True
        if event.kind == Kind.ESCALATED and "person" in event.values and route.channel.owner_id is not None:
            return False
        if event.kind in SEQUELS:
            return (route.channel_id, event.alert_id) in self.told and self._is_about(route, event)
        if route.only_escalated and event.alert.escalated_at is None:
            return False
        loud = not route.severities or event.severity in route.severities or event.kind == Kind.ESCALATED
        return loud and self._is_about(route, event)

    def _is_about(self, route: Route, event: AlertEvent) -> bool:
        cause = event.alert.cause
        if route.causes and not any(cause == name or cause.startswith(f"{name}.") for name in route.causes):
            return False
        wanted = {project.pk for project in route.projects.all()}
        return not wanted or self.projects.get(event.alert.instance_id or 0) in wanted


def queue_deliveries(events: Sequence[AlertEvent]) -> None:
    """The receiver of announced events. What it writes is kept or lost together with them."""
    loud = [event for event in events if not event.quiet or event.kind == Kind.RESOLVED]
    listeners = Listeners.of(loud) if loud else Listeners({}, {}, frozenset())
    rows = [_delivery(event, route) for event in loud for route in listeners.of_event(event)]
    if rows:
        Delivery.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
        transaction.on_commit(send_soon, robust=True)


def send_soon() -> None:
    """Without waiting for the next beat. A broker that is away costs only these seconds."""
    from fleet.alerts.channels.tasks import dispatch_channels

    dispatch_channels.apply_async(expires=30, retry=False)


def hours_of(route: Route) -> Hours:
    return Hours(zone_of(route), route.digest, route.quiet_from, route.quiet_until)


def zone_of(route: Route | None, channel: Channel | None = None) -> ZoneInfo:
    """The route's own, or its owner's, or UTC."""
    channel = channel or (route.channel if route else None)
    owner = channel.owner if channel else None
    name = (route.time_zone if route else "") or (owner.time_zone if owner else "")
    return ZoneInfo(name if name in ZONES else "UTC")


def is_escalated_to(channel: Channel, event: AlertEvent) -> bool:
    """It was escalated to the channel's owner, who then hears all of it, whatever the channel's routes want."""
    return channel.owner_id is not None and channel.owner_id == event.alert.escalated_to_id


def _delivery(event: AlertEvent, route: Route) -> Delivery:
    broken = route.channel.broken
    # Somebody asks for this one person: it waits for no digest, and breaks the quiet as urgent alerts do.
    named = event.kind == Kind.ESCALATED and is_escalated_to(route.channel, event)
    urgent = event.severity == Severity.URGENT and event.kind in ASKING
    breaks = route.urgent_breaks_quiet and (named or urgent)
    hours = replace(hours_of(route), digest=Digest.NONE) if named else hours_of(route)
    return Delivery(
        channel=route.channel,
        route=route,
        event=event,
        alert=event.alert,
        digest=hours.digest != Digest.NONE,
        state=DeliveryState.DEAD if broken else DeliveryState.QUEUED,
        error=broken,
        created_at=event.at,
        next_attempt_at=hours.due(event.at, breaks_quiet=breaks),
    )
