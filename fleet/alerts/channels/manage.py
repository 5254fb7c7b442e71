"""What people do with channels: add, change, test, remove, and say who hears what."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.alerts.causes import all_causes
from fleet.alerts.channels.breaking import works_again
from fleet.alerts.channels.credentials import config_of, parted
from fleet.alerts.channels.models import Channel, Delivery, DeliveryState, Digest, Route
from fleet.alerts.channels.picking import WAITING
from fleet.alerts.channels.recording import give_up
from fleet.alerts.channels.routing import ZONES, send_soon
from fleet.alerts.channels.senders.base import Field, Sender
from fleet.alerts.channels.senders.email import MOST_ADDRESSES, addresses
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.models import Severity
from fleet.guard import RefusedAddressError
from fleet.inventory.credentials import CredentialError
from fleet.teams.audit import Actor, record
from fleet.teams.fields import one_line
from fleet.teams.models import Project, Team, User
from fleet.telemetry.scrape.run import installation_guard
from fleet.telemetry.scrape.words import refusal_text

MAX_CHANNELS = 50
MAX_ROUTES = 10
SHORTEST_SECRET = 16


class ChannelError(ValueError):
    """What was asked cannot be done. `field`: the form field that is wrong; the text is for the person who asked."""

    def __init__(self, field: str, text: str | Promise) -> None:
        super().__init__(text)
        self.field, self.text = field, text


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteWords:
    """See models.Route."""

    severities: Sequence[str] = ()
    causes: Sequence[str] = ()
    projects: Sequence[Project] = ()
    only_escalated: bool = False
    only_mine: bool = False
    quiet_from: time | None = None
    quiet_until: time | None = None
    urgent_breaks_quiet: bool = True
    digest: str = Digest.NONE
    language: str = ""
    time_zone: str = ""


EVERYTHING = RouteWords()


@transaction.atomic
def add_channel(
    *, actor: Actor, team: Team, kind: str, name: str, typed: Mapping[str, str], owner: User | None = None, hears: RouteWords = EVERYTHING
) -> Channel:  # fmt: skip
    """With one route. `owner`: it is that person's own. Raises ChannelError."""
    sender = SENDERS.get(kind)
    if sender is None:
        raise ChannelError("kind", _("There is no such kind of channel."))
    _check_typed(sender, typed)
    name = _name(name)
    Team.objects.select_for_update().get(pk=team.pk)
    if Channel.objects.filter(team=team).count() >= MAX_CHANNELS:
        raise ChannelError("name", _("A team has at most %(n)d channels. Remove one first.") % {"n": MAX_CHANNELS})
    channel = Channel(team=team, owner=owner, kind=kind, name=name, created_by=actor.user)
    _seal(channel, sender, typed)
    _save(channel)
    add_route(channel=channel, words=hears)
    record(actor=actor, team=team, action="channel.add", target=channel, new=said(channel))
    return channel


@transaction.atomic
def update_channel(*, actor: Actor, channel: Channel, name: str, enabled: bool, typed: Mapping[str, str]) -> Channel:
    """Secrets that are left empty stay as they are; they never go to another address. Raises ChannelError."""
    if not enabled:
        works_again(channel, timezone.now(), why="channel_off")
    locked = Channel.objects.select_for_update(of=("self",)).select_related("team").get(pk=channel.pk)
    sender, before = SENDERS[locked.kind], said(locked)
    both = _with_kept(locked, sender, typed)
    _check_typed(sender, both)
    _seal(locked, sender, both)
    locked.name, locked.enabled = _name(name), enabled
    # What was wrong may be mended now; a successful sending says so, and what could not be told is told then.
    locked.broken, locked.hold_until, locked.failures = "", None, 0
    _save(locked)
    if not enabled:
        give_up(locked, "off", state=DeliveryState.SUPPRESSED)
    after = said(locked)
    old = {key: value for key, value in before.items() if after[key] != value}
    new = {key: after[key] for key in old}
    if any(typed.get(field.name) for field in sender.fields if field.secret):
        new["token_changed"] = True
    record(actor=actor, team=locked.team, action="channel.update", target=locked, old=old, new=new)
    return locked


@transaction.atomic
def remove_channel(*, actor: Actor, channel: Channel) -> bool:
    """With its routes and its log. False: it was removed already."""
    works_again(channel, timezone.now(), why="channel_off")
    old, pk, name = said(channel), channel.pk, str(channel)
    removed, _by_model = Channel.objects.filter(pk=pk).delete()
    if removed:
        record(actor=actor, team=channel.team, action="channel.remove", target=channel, old={**old, "name": name})
    return bool(removed)


@transaction.atomic
def test_channel(*, actor: Actor, channel: Channel, now: datetime) -> Delivery:
    """A message is on its way; its line in the log says what came of it. Raises ChannelError for a channel that is switched off."""
    locked = Channel.objects.select_for_update(of=("self",)).select_related("team").get(pk=channel.pk)
    if not locked.enabled:
        raise ChannelError("enabled", _("It is switched off. Switch it on first."))
    waiting = Delivery.objects.filter(channel=locked, event=None, state__in=[*WAITING, DeliveryState.SENDING]).first()
    if waiting is not None:
        return waiting
    Channel.objects.filter(pk=locked.pk).update(broken="", hold_until=None, failures=0)
    row = Delivery.objects.create(channel=locked, route=locked.routes.first(), created_at=now, next_attempt_at=now)
    record(actor=actor, team=locked.team, action="channel.test", target=locked)
    transaction.on_commit(send_soon, robust=True)
    return row


def add_route(*, channel: Channel, words: RouteWords) -> Route:
    """Part of another change, which is recorded. Raises ChannelError."""
    if channel.routes.count() >= MAX_ROUTES:
        raise ChannelError("digest", _("A channel has at most %(n)d rules of who hears what.") % {"n": MAX_ROUTES})
    return _write_route(Route(channel=channel), words)


@transaction.atomic
def save_route(*, actor: Actor, channel: Channel, words: RouteWords, route: Route | None = None) -> Route:
    """A new one without `route`. Raises ChannelError."""
    Channel.objects.select_for_update(of=("self",)).get(pk=channel.pk)
    old = said_of_route(route) if route else {}
    saved = _write_route(route, words) if route else add_route(channel=channel, words=words)
    record(actor=actor, team=channel.team, action="channel.route", target=channel, old=old, new=said_of_route(saved))
    return saved


@transaction.atomic
def remove_route(*, actor: Actor, route: Route) -> bool:
    old, channel = said_of_route(route), route.channel
    removed, _by_model = Route.objects.filter(pk=route.pk).delete()
    if removed:
        record(actor=actor, team=channel.team, action="channel.route", target=channel, old=old)
    return bool(removed)


def said(channel: Channel) -> dict[str, object]:
    """For the audit log; secrets are left out."""
    owner = channel.owner.get_username() if channel.owner else ""
    told = {"name": channel.name, "kind": channel.kind, "owner": owner, "enabled": channel.enabled}
    return {**told, "options": dict(channel.options), "has_token": bool(channel.secret)}


def said_of_route(route: Route) -> dict[str, Any]:
    clock = [f"{at:%H:%M}" if at else "" for at in (route.quiet_from, route.quiet_until)]
    return {
        "severity": list(route.severities),
        "causes": list(route.causes),
        "project": [project.name for project in Project.objects.filter(pk__in=route.projects.values("pk"))],
        "only_escalated": route.only_escalated,
        "only_mine": route.only_mine,
        "urgent_breaks_quiet": route.urgent_breaks_quiet,
        "quiet_hours": "–".join(clock) if any(clock) else "",
        "digest": route.digest,
        "language": route.language,
        "time_zone": route.time_zone,
    }


def _write_route(route: Route, words: RouteWords) -> Route:
    _check_route(route.channel, words)
    for name in ("only_escalated", "only_mine", "quiet_from", "quiet_until", "urgent_breaks_quiet", "digest", "language", "time_zone"):  # fmt: skip
        setattr(route, name, getattr(words, name))
    route.severities, route.causes = list(words.severities), list(words.causes)
    route.save()
    route.projects.set(words.projects)
    return route


def _check_route(channel: Channel, words: RouteWords) -> None:
    if not set(words.severities) <= set(Severity):
        raise ChannelError("severities", _("Choose urgent, warning or note."))
    if unknown := sorted(set(words.causes) - _known_causes()):
        raise ChannelError(
            "causes", _("There is no such kind of trouble: %(names)s.") % {"names": ", ".join(unknown)[:200]}
        )
    if words.language and words.language not in dict(settings.LANGUAGES):
        raise ChannelError("language", _("Choose a language that Rackrent speaks."))
    if words.digest not in Digest.values:
        raise ChannelError("digest", _("Choose how often: none, hourly, daily or weekly."))
    if (words.quiet_from is None) != (words.quiet_until is None):
        raise ChannelError("quiet_until", _("Quiet hours need a beginning and an end, or neither."))
    if words.time_zone and words.time_zone not in ZONES:
        raise ChannelError("time_zone", _("Choose a time zone of the list, as in Europe/Berlin."))
    if words.digest != Digest.NONE and not SENDERS[channel.kind].gathers:
        raise ChannelError("digest", _("This kind of channel has one incident an alert: it is told at once."))
    if words.only_mine and channel.owner_id is None:
        raise ChannelError("only_mine", _("A channel of the team has no machines of its own; name projects instead."))
    if any(project.team_id != channel.team_id for project in words.projects):
        raise ChannelError("projects", _("Choose projects of this team."))


def _known_causes() -> set[str]:
    """By name, and families of them: "gpu.lost" and "gpu"."""
    names = {cause.name for cause in all_causes()}
    return names | {name.rpartition(".")[0] for name in names if "." in name}


def _name(typed: str) -> str:
    """As it can be shown. Raises ChannelError where nothing is left."""
    name = one_line(typed)
    if not name:
        raise ChannelError("name", _("This is needed."))
    return name


def _check_typed(sender: Sender, typed: Mapping[str, str]) -> None:
    if unknown := sorted(set(typed) - {field.name for field in sender.fields}):
        known = ", ".join(field.name for field in sender.fields)
        said = {"names": ", ".join(unknown)[:200], "known": known}
        raise ChannelError("typed", _("Unknown: %(names)s. This kind of channel has %(known)s.") % said)
    for one in sender.fields:
        value = typed.get(one.name, "")
        if not value and one.required:
            raise ChannelError(one.name, _("This is needed."))
        if len(value) > one.max_length:
            raise ChannelError(one.name, _("At most %(n)d signs.") % {"n": one.max_length})
        if value:
            _check_value(one, value)
    secret = typed.get("secret", "")
    if sender.name == "webhook" and len(secret) < SHORTEST_SECRET:
        raise ChannelError("secret", _("At least %(n)d signs, so that nobody guesses it.") % {"n": SHORTEST_SECRET})


def _check_value(one: Field, value: str) -> None:
    if one.pattern and not re.fullmatch(one.pattern, value):
        raise ChannelError(one.name, _("It has signs that are not possible there: %(help)s.") % {"help": one.help})
    if one.secret and not value.isascii():
        raise ChannelError(one.name, _("Keys and addresses have no signs like these; copy it again."))
    if one.kind == "url":
        try:
            installation_guard().check_url(value)
        except RefusedAddressError as error:
            raise ChannelError(one.name, refusal_text(error.code, error.subject)) from None
    if one.kind == "emails":
        _check_addresses(one, addresses(value))


def _check_addresses(one: Field, typed: Sequence[str]) -> None:
    if not 1 <= len(typed) <= MOST_ADDRESSES:
        raise ChannelError(one.name, _("Write one to %(n)d addresses.") % {"n": MOST_ADDRESSES})
    for address in typed:
        try:
            validate_email(address)
        except ValidationError:
            text = _("%(address)s is no e-mail address.") % {"address": address[:100]}
            raise ChannelError(one.name, text) from None


def _with_kept(channel: Channel, sender: Sender, typed: Mapping[str, str]) -> dict[str, str]:
    try:
        known = config_of(channel)
    except CredentialError:
        known = dict(channel.options)
    kept = {one.name: known[one.name] for one in sender.fields if one.secret and not typed.get(one.name) and one.name in known}  # fmt: skip
    moved = [one for one in sender.fields if one.kind == "url" and not one.secret and typed.get(one.name, "") != known.get(one.name, "")]  # fmt: skip
    if kept and moved:
        raise ChannelError(next(iter(kept)), _("The address is another one: type its secret again."))
    return {**typed, **kept}


def _seal(channel: Channel, sender: Sender, typed: Mapping[str, str]) -> None:
    try:
        channel.options, channel.secret = parted(sender, typed)
    except CredentialError as error:
        raise ChannelError(sender.fields[0].name, gettext(str(error))) from None


def _save(channel: Channel) -> None:
    try:
        with transaction.atomic():
            channel.save()
    except IntegrityError:
        raise ChannelError("name", _("A channel of that name is there already.")) from None
