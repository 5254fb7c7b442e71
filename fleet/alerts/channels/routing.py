"""Who hears of which event: the deliveries that are written in its transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo, available_timezones

from django.db import connection, transaction
from django.db.models import Prefetch

from fleet.alerts.channels.models import Channel, Delivery, DeliveryState, Digest, Route
from fleet.alerts.channels.senders.base import ASKING
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.channels.timing import Hours
from fleet.alerts.models import Alert, AlertEvent, AlertEventKind, Severity
from fleet.alerts.rules.reporting import NETWORK_OUTAGE
from fleet.inventory.models import Instance
from fleet.teams.models import Project

Kind = AlertEventKind
# News of something that was told before; whoever was not told of it needs no such news.
SEQUELS = frozenset({Kind.ACKNOWLEDGED, Kind.SNOOZED, Kind.IMPROVED, Kind.RESOLVED})
BATCH = 2_000
ZONES = available_timezones()


@dataclass(frozen=True)
class Owned:
    """Whose machines are where, of the people that want to hear of theirs only: (person, machine), (person, account)."""

    machines: frozenset[tuple[int, int]] = frozenset()
    accounts: frozenset[tuple[int, int]] = frozenset()

    @classmethod
    def by(cls, routes: Iterable[list[Route]]) -> Owned:
        people = {route.channel.owner_id for some in routes for route in some if route.only_mine}
        if not people:
            return cls()
        rows = list(Instance.objects.filter(owner__in=people, gone_at=None).values_list("owner_id", "pk", "account_id"))
        return cls(frozenset((owner, pk) for owner, pk, _at in rows), frozenset((owner, at) for owner, _pk, at in rows))

    def is_about(self, person: int | None, alert: Alert) -> bool:
        """An outage is about everybody who has a machine in it."""
        if person is None:
            return False
        if alert.instance_id is not None:
            return (person, alert.instance_id) in self.machines
        if alert.cause == NETWORK_OUTAGE:
            return any(owner == person for owner, _machine in self.machines)
        return (person, alert.account_id) in self.accounts


@dataclass(frozen=True)
class Listeners:
    """All that is needed to route some events, read in a constant number of queries."""

    routes: dict[int, list[Route]]
    projects: dict[int, int | None]
    told: frozenset[tuple[int, int]]
    owned: Owned

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
            return cls({}, {}, frozenset(), Owned())
        told = Delivery.objects.filter(alert__in=alerts).exclude(state=DeliveryState.SUPPRESSED)
        machines = {alert.instance_id for alert in alerts.values() if alert.instance_id}
        return cls(
            routes,
            dict(Instance.objects.filter(pk__in=machines).values_list("pk", "project_id")),
            frozenset(told.values_list("channel_id", "alert_id").distinct()),
            Owned.by(routes.values()),
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
        own_act = event.actor_id is not None and event.actor_id == route.channel.owner_id
        if own_act or event.alert.subject == f"channel:{route.channel_id}":
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
        if route.only_mine and not self.owned.is_about(route.channel.owner_id, event.alert):
            return False
        wanted = {project.pk for project in route.projects.all()}
        return not wanted or self.projects.get(event.alert.instance_id or 0) in wanted


def queue_deliveries(events: Sequence[AlertEvent]) -> None:
    """The receiver of announced events. What it writes is kept or lost together with them."""
    loud = [event for event in events if not event.quiet or event.kind == Kind.RESOLVED]
    listeners = Listeners.of(loud) if loud else None
    wanted = [(event, route) for event in loud if listeners for route in listeners.of_event(event)]
    there = _hold({route.pk for _event, route in wanted})
    rows = [_delivery(event, route) for event, route in wanted if route.pk in there]
    if rows:
        Delivery.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
        transaction.on_commit(send_soon, robust=True)


def _hold(routes: set[int]) -> set[int]:
    """Those that are still there, with their channels, until the end of the transaction: what is removed meanwhile must not undo the event."""
    if not routes:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.id FROM fleet_route r JOIN fleet_channel c ON c.id = r.channel_id WHERE r.id = ANY(%s) FOR KEY SHARE",
            [sorted(routes)],
        )
        return {pk for (pk,) in cursor.fetchall()}


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
