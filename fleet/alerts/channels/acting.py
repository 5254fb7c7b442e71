"""What a link in a message does, without sign-in: acknowledge and snooze, each once."""

from __future__ import annotations

from collections.abc import Mapping
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
ACTS: Mapping[str, str | Promise] = {
    "acknowledge": _("Acknowledge"),
    "snooze_1h": _("Snooze for 1 hour"),
    "snooze_4h": _("Snooze for 4 hours"),
    "snooze_tomorrow": _("Snooze until tomorrow, 09:00"),
}
HOURS = {"snooze_1h": 1, "snooze_4h": 4}


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
    """False where the link did this already, or there is nothing left to do. Raises KeyError for an act that there is not."""
    _label = ACTS[action]
    if linked.is_over:
        return False
    _use, is_first = LinkUse.objects.get_or_create(nonce=linked.signed.nonce, action=action, defaults={"at": now})
    if not is_first:
        return False
    actor = actor_of(linked.channel, ip_address)
    if action == "acknowledge":
        return acknowledge_alert(actor=actor, alert=linked.alert, now=now)
    return snooze_alert(actor=actor, alert=linked.alert, now=now, until=snooze_until(action, now, zone_of(linked.channel.routes.first(), linked.channel)))  # fmt: skip


def actor_of(channel: Channel, ip_address: str | None) -> Actor:
    """The owner of a personal channel; else nobody knows who pressed it, and the link answers for where it was sent."""
    if channel.owner is not None:
        return Actor(channel.owner, channel.owner.get_username(), "link", ip_address)
    return Actor(None, f"{LINK}{channel.name}", "link", ip_address)


def snooze_until(action: str, now: datetime, zone: ZoneInfo) -> datetime:
    if action in HOURS:
        return now + timedelta(hours=HOURS[action])
    tomorrow = now.astimezone(zone).date() + timedelta(days=1)
    return datetime.combine(tomorrow, TOMORROW_AT, zone)
