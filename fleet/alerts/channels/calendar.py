"""What is planned, kept as calendars know it, and the feed that people subscribe to. It is never the only warning."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from icalendar import Calendar, Event

from fleet.alerts.channels.links import page_url, site_name
from fleet.alerts.channels.models import CalendarEntry, CalendarFeed
from fleet.alerts.models import MaintenanceWindow
from fleet.inventory.models import Instance
from fleet.inventory.plans.models import PlannedAction, PlannedActionState, PlannedActionVerb
from fleet.inventory.provider_word.models import ProviderNotice
from fleet.inventory.provider_word.words import NOTICES
from fleet.providers.base import NoticeKind
from fleet.teams.audit import Actor, record
from fleet.teams.fields import one_line
from fleet.teams.models import Membership, Team, User
from fleet.teams.secrets import hash_token, new_token

PAST = timedelta(days=7)
AHEAD = timedelta(days=400)
# A moment, as long as calendars draw one.
MOMENT = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class Planned:
    """One thing that will happen, [starts_at, ends_at). `uid` is the same for as long as it is the same thing; `values` are JSON-ready."""

    uid: str
    starts_at: datetime
    ends_at: datetime
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlanKind:
    """A kind of thing that is planned. read(team, now) yields what stands now; words(values) is its summary in the reader's language."""

    name: str
    read: Callable[[Team, datetime], Iterable[Planned]]
    words: Callable[[dict[str, Any]], str | Promise]


_kinds: dict[str, PlanKind] = {}


def register_plan(kind: PlanKind) -> PlanKind:
    """For the slices above that plan something, such as stops."""
    if kind.name in _kinds:
        raise ValueError(f"The plan {kind.name!r} is registered already")
    _kinds[kind.name] = kind
    return kind


def leases(team: Team, now: datetime) -> Iterable[Planned]:
    rows = Instance.objects.filter(team=team, gone_at=None, expires_at__gt=now - PAST, expires_at__lt=now + AHEAD)
    for pk, name, ends_at in rows.values_list("pk", "name", "expires_at"):
        assert ends_at is not None
        yield Planned(f"lease-{pk}", ends_at, ends_at + MOMENT, {"machine": name})


def windows(team: Team, now: datetime) -> Iterable[Planned]:
    rows = MaintenanceWindow.objects.filter(
        team=team, cancelled_at=None, ends_at__gt=now - PAST, starts_at__lt=now + AHEAD
    )
    for row in rows.select_related("instance", "account"):
        about = row.instance or row.account
        values = {"about": about.name if about else team.name, "reason": row.reason}
        yield Planned(f"window-{row.pk}", row.starts_at, row.ends_at, values)


def notices(team: Team, now: datetime) -> Iterable[Planned]:
    """What providers announced for a time, while they list it."""
    rows = ProviderNotice.objects.filter(
        account__team=team, gone_at=None, instance__gone_at=None, starts_at__gt=now - PAST, starts_at__lt=now + AHEAD
    )
    for pk, name, kind, starts_at, detail in rows.values_list("pk", "instance__name", "kind", "starts_at", "detail"):
        assert starts_at is not None
        yield Planned(
            f"notice-{pk}", starts_at, starts_at + MOMENT, {"machine": name, "notice": kind, "reason": detail}
        )


def planned_actions(team: Team, now: datetime) -> Iterable[Planned]:
    """What is planned for machines and stands, whoever planned it."""
    rows = PlannedAction.objects.filter(
        team=team, state=PlannedActionState.PLANNED, due_at__gt=now - PAST, due_at__lt=now + AHEAD
    )
    for pk, name, verb, due_at, reason in rows.values_list("pk", "instance__name", "verb", "due_at", "reason"):
        yield Planned(f"planned-{pk}", due_at, due_at + MOMENT, {"machine": name, "act": verb, "reason": reason})


def _planned_words(values: dict[str, Any]) -> str:
    said = {"machine": values["machine"], "act": PlannedActionVerb(values["act"]).label}
    return _("Planned for %(machine)s: %(act)s") % said


def _notice_words(values: dict[str, Any]) -> str:
    return f"{values['machine']}: {NOTICES[NoticeKind(values['notice'])]}"


register_plan(
    PlanKind("lease", leases, lambda values: _("The lease of %(machine)s ends") % {"machine": values["machine"]})
)
register_plan(PlanKind("window", windows, lambda values: _("Maintenance: %(about)s") % {"about": values["about"]}))
register_plan(PlanKind("notice", notices, _notice_words))
register_plan(PlanKind("planned_action", planned_actions, _planned_words))


def sync_calendars(*, now: datetime) -> int:
    """Of every team that somebody subscribes to. Returns how many entries changed."""
    teams = Team.objects.filter(pk__in=CalendarFeed.objects.values("team"))
    return sum(sync_calendar(team=team, now=now) for team in teams)


@transaction.atomic
def sync_calendar(*, team: Team, now: datetime) -> int:
    """Brings the entries up to what is planned now. What is called off before it is over stays, as cancelled; what is past stays as it was."""
    Team.objects.select_for_update().get(pk=team.pk)
    known = {entry.uid: entry for entry in CalendarEntry.objects.filter(team=team)}
    planned = {item.uid: (kind.name, item) for kind in _kinds.values() for item in kind.read(team, now)}
    changed = [
        entry for uid, (kind, item) in planned.items() if (entry := _brought_up(known.get(uid), team, kind, item, now))
    ]
    gone = [entry for uid, entry in known.items() if uid not in planned and entry.cancelled_at is None]
    off = [entry for entry in gone if _is_to_come(entry, now)]
    for entry in off:
        entry.cancelled_at, entry.changed_at = now, now
        entry.sequence += 1
    for entry in (*changed, *off):
        entry.save()
    return len(changed) + len(off)


def _is_to_come(entry: CalendarEntry, now: datetime) -> bool:
    """What lasts can be called off while it runs; a moment that has come has come."""
    is_moment = entry.ends_at - entry.starts_at <= MOMENT
    return (entry.starts_at if is_moment else entry.ends_at) > now


def _brought_up(entry: CalendarEntry | None, team: Team, kind: str, item: Planned, now: datetime) -> CalendarEntry | None:  # fmt: skip
    """The entry as it must be; None where it is so already."""
    says = (item.starts_at, item.ends_at, kind, item.values)
    if entry is None:
        return CalendarEntry(team=team, uid=item.uid, kind=kind, starts_at=item.starts_at, ends_at=item.ends_at, values=item.values, created_at=now, changed_at=now)  # fmt: skip
    if entry.says() == says and entry.cancelled_at is None:
        return None
    entry.starts_at, entry.ends_at, entry.kind, entry.values = says
    entry.sequence, entry.changed_at, entry.cancelled_at = entry.sequence + 1, now, None
    return entry


@transaction.atomic
def make_feed(*, actor: Actor, team: Team, user: User, now: datetime) -> str:
    """A new address, whose secret is shown once; an older one of the person for this team ends."""
    token = new_token("rrc")
    feed, _made = CalendarFeed.objects.update_or_create(
        team=team, user=user, defaults={"token_hash": token.hash, "created_at": now}
    )
    record(actor=actor, team=team, action="calendar.make", target=feed)
    sync_calendar(team=team, now=now)
    return token.secret


@transaction.atomic
def revoke_feed(*, actor: Actor, team: Team, user: User) -> bool:
    feed = CalendarFeed.objects.filter(team=team, user=user).first()
    if feed is None:
        return False
    record(actor=actor, team=team, action="calendar.revoke", target=feed)
    feed.delete()
    return True


def find_feed(secret: str) -> CalendarFeed | None:
    """None for a wrong secret, and for a person who is no longer of the team."""
    feed = CalendarFeed.objects.filter(token_hash=hash_token(secret), user__is_active=True).select_related("team", "user").first()  # fmt: skip
    if feed is None or not Membership.objects.filter(team=feed.team_id, user=feed.user_id).exists():
        return None
    return feed


def feed_text(feed: CalendarFeed) -> bytes:
    """RFC 5545, in the language that is active."""
    calendar = Calendar()
    calendar.add("prodid", "-//Rackrent//Calendar//EN")
    calendar.add("version", "2.0")
    calendar.add("method", "PUBLISH")
    calendar.add("x-wr-calname", one_line(_("Rackrent: %(team)s") % {"team": feed.team.name}))
    for entry in entries_of(feed.team):
        calendar.add_component(_event(entry))
    return bytes(calendar.to_ical())


def entries_of(team: Team) -> QuerySet[CalendarEntry]:
    return CalendarEntry.objects.filter(team=team).order_by("starts_at", "uid")


def _event(entry: CalendarEntry) -> Event:
    event = Event()
    event.add("uid", f"{entry.uid}@{site_name()}")
    event.add("dtstamp", entry.changed_at)
    event.add("last-modified", entry.changed_at)
    event.add("created", entry.created_at)
    event.add("sequence", entry.sequence)
    event.add("dtstart", entry.starts_at)
    event.add("dtend", entry.ends_at)
    event.add("summary", one_line(_words(entry)))
    if reason := one_line(str(entry.values.get("reason", ""))):
        event.add("description", reason)
    event.add("url", page_url(entry.team))
    event.add("transp", "TRANSPARENT")
    event.add("status", "CANCELLED" if entry.cancelled_at else "CONFIRMED")
    return event


def _words(entry: CalendarEntry) -> str:
    kind = _kinds.get(entry.kind)
    return str(kind.words(entry.values)) if kind else entry.kind
