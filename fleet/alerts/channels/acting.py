"""What a link in a message does, without sign-in: acknowledge and snooze, or what the alert's cause has instead; each once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.db import transaction
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from fleet.alerts.channels.links import LinkError, Signed, unsign
from fleet.alerts.channels.models import Channel, LinkUse
from fleet.alerts.channels.readers import has_reader, may_act
from fleet.alerts.channels.routing import zone_of
from fleet.alerts.models import Alert
from fleet.alerts.people import acknowledge_alert, snooze_alert
from fleet.teams.actor_words import LINK
from fleet.teams.audit import Actor

TOMORROW_AT = time(9)
# Does it in the reader's time zone. False where there is nothing left to do; raises ValidationError where it must not be done.
Doing = Callable[[Actor, Alert, datetime, ZoneInfo], bool]


@dataclass(frozen=True, slots=True)
class LinkAct:
    """`name`: at most 16 characters, in LinkUse. `done`: what is said afterwards; "%(until)s" in it is when the alert's snooze ends."""

    name: str
    label: str | Promise
    done: str | Promise
    do: Doing


def snoozing(until: Callable[[datetime, ZoneInfo], datetime]) -> Doing:
    def snooze(actor: Actor, alert: Alert, now: datetime, zone: ZoneInfo) -> bool:
        return snooze_alert(actor=actor, alert=alert, now=now, until=until(now, zone))

    return snooze


def hours_on(hours: int) -> Callable[[datetime, ZoneInfo], datetime]:
    return lambda now, _zone: now + timedelta(hours=hours)


def tomorrow_morning(now: datetime, zone: ZoneInfo) -> datetime:
    return datetime.combine(now.astimezone(zone).date() + timedelta(days=1), TOMORROW_AT, zone)


SNOOZED = _("Snoozed until %(until)s. It comes back early if it gets worse.")
ACTS: Sequence[LinkAct] = (
    LinkAct(
        "acknowledge",
        _("Acknowledge"),
        _("Acknowledged: reminders stop."),
        lambda actor, alert, now, _zone: acknowledge_alert(actor=actor, alert=alert, now=now),
    ),
    LinkAct("snooze_1h", _("Snooze for 1 hour"), SNOOZED, snoozing(hours_on(1))),
    LinkAct("snooze_4h", _("Snooze for 4 hours"), SNOOZED, snoozing(hours_on(4))),
    LinkAct("snooze_tomorrow", _("Snooze until tomorrow, 09:00"), SNOOZED, snoozing(tomorrow_morning)),
)
_of_cause: dict[str, Sequence[LinkAct]] = {}


def register_acts(cause: str, acts: Sequence[LinkAct]) -> None:
    """For the rooms above: what links about this cause do instead. Nothing of it may need to know who pressed it."""
    _of_cause[cause] = acts


def acts_of(alert: Alert) -> dict[str, LinkAct]:
    return {act.name: act for act in _of_cause.get(alert.cause, ACTS)}


def has_own_acts(alert: Alert) -> bool:
    return alert.cause in _of_cause


@dataclass(frozen=True, slots=True)
class Linked:
    """What a valid link is about. `is_over`: the alert has closed since, or opened again: nothing is done to it any more."""

    signed: Signed
    alert: Alert
    channel: Channel
    used: frozenset[str]

    @property
    def is_over(self) -> bool:
        return not self.alert.is_open or self.alert.reopened != self.signed.course


def follow(token: str) -> Linked:
    """Changes nothing. Raises LinkError: old, wrong, or gone with the channel that it was sent to."""
    signed = unsign(token)
    alert = Alert.objects.filter(pk=signed.alert).select_related("team", "instance", "account").first()
    channel = Channel.objects.filter(pk=signed.channel, enabled=True).select_related("owner").first()
    if (
        alert is None
        or channel is None
        or channel.team_id != alert.team_id
        or not has_reader(channel)
        or not may_act(channel)
    ):
        raise LinkError("gone")
    used = LinkUse.objects.filter(nonce=signed.nonce).values_list("action", flat=True)
    return Linked(signed, alert, channel, frozenset(used))


@transaction.atomic
def act_by_link(*, linked: Linked, action: str, ip_address: str | None, now: datetime) -> bool:
    """False where the link did this already, or there is nothing left to do.

    Raises KeyError for an act that there is not, ValidationError
    where the act itself must not be done.
    """
    act = acts_of(linked.alert)[action]
    if linked.is_over:
        return False
    _use, is_first = LinkUse.objects.get_or_create(nonce=linked.signed.nonce, action=action, defaults={"at": now})
    if not is_first:
        return False
    actor, zone = actor_of(linked.channel, ip_address), zone_of(linked.channel.routes.first(), linked.channel)
    return act.do(actor, linked.alert, now, zone)


def actor_of(channel: Channel, ip_address: str | None) -> Actor:
    """The owner of a personal channel; else nobody knows who pressed it, and the link answers for where it was sent."""
    if channel.owner is not None:
        return Actor(channel.owner, channel.owner.get_username(), "link", ip_address)
    return Actor(None, f"{LINK}{channel.name}", "link", ip_address)
