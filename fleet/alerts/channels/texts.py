"""What a message says, in the reader's language and zone: what is, the evidence, the money so far, and what to do."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone, translation
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from fleet.alerts.causes import cause_of
from fleet.alerts.channels.acting import acts_of, has_own_acts
from fleet.alerts.channels.links import act_url, page_url, site_name
from fleet.alerts.channels.models import Channel, Delivery
from fleet.alerts.channels.picking import newest_by_alert
from fleet.alerts.channels.readers import may_act
from fleet.alerts.channels.routing import is_escalated_to, zone_of
from fleet.alerts.channels.senders.base import Link, Message
from fleet.alerts.findings import RANKS
from fleet.alerts.models import Alert, AlertEvent, AlertEventKind, Severity
from fleet.alerts.words import remedy_of, title_of, unanswered_words, why_of
from fleet.formats import amounts_text, duration_text, money_text
from fleet.teams.actor_words import actor_text

Kind = AlertEventKind
# So many alerts a message about many names, worst first.
NAMED = 10
# Less than that is not worth a line.
CENT = Decimal("0.01")
TITLES: Mapping[str, str | Promise] = {
    Kind.OPENED: "%(what)s",
    Kind.SIGNAL: gettext_lazy("One more signal: %(what)s"),
    Kind.WORSENED: gettext_lazy("Got worse: %(what)s"),
    Kind.IMPROVED: gettext_lazy("Got better: %(what)s"),
    Kind.ACKNOWLEDGED: gettext_lazy("Acknowledged: %(what)s"),
    Kind.SNOOZED: gettext_lazy("Snoozed: %(what)s"),
    Kind.WOKE: gettext_lazy("Back from its snooze: %(what)s"),
    Kind.ESCALATED: gettext_lazy("Escalated: %(what)s"),
    Kind.REMINDED: gettext_lazy("Still so: %(what)s"),
    Kind.FLAPPING: gettext_lazy("Comes and goes: %(what)s"),
    Kind.RESOLVED: gettext_lazy("Resolved: %(what)s"),
    Kind.REOPENED: gettext_lazy("Again: %(what)s"),
}


# By why it came back.
WOKE_TITLES: Mapping[str, str | Promise] = {
    "maintenance": gettext_lazy("Goes on after maintenance: %(what)s"),
    "worse": gettext_lazy("Got worse: %(what)s"),
    "signal": gettext_lazy("One more signal: %(what)s"),
    "person": gettext_lazy("No longer snoozed: %(what)s"),
    "person_left": gettext_lazy("Nobody works on it any more: %(what)s"),
}
BEGINS = (Kind.OPENED, Kind.REOPENED, Kind.FLAPPING)


def message_of(channel: Channel, rows: Sequence[Delivery], *, now: datetime) -> Message:
    route = rows[0].route
    language = (route.language if route else "") or (channel.owner.language if channel.owner else "") or "en"
    with translation.override(language), timezone.override(zone_of(route, channel)):
        newest = newest_by_alert(rows)
        if rows[0].event is None:
            return test_message(channel, rows[0], language=language, now=now)
        if len(newest) == 1 and not newest[0].digest:
            return one_message(channel, newest[0], language=language, now=now)
        return summary(channel, newest, language=language, now=now)


def one_message(channel: Channel, row: Delivery, *, language: str, now: datetime) -> Message:
    event, alert = row.event, row.alert
    assert event is not None
    assert alert is not None
    over = event.kind == Kind.RESOLVED
    return Message(
        key=_key(row),
        thread=thread_of(event),
        event=event.kind,
        severity=event.severity,
        severity_word=_("Resolved") if over else str(Severity(event.severity).label),
        title=_title(channel, event) % {"what": title_of(alert)},
        lines=_lines(event),
        facts=_facts(alert, now),
        remedy="" if over else remedy_of(alert),
        link=Link(_("Open in Rackrent"), page_url(alert)),
        acts=() if over or not may_act(channel) else _acts(alert, act_url(channel, alert, key=_key(row))),
        sent_at=now,
        is_resolved=over,
        language=language,
        data=data_of(alert, event, now),
    )


def _acts(alert: Alert, url: str) -> tuple[Link, ...]:
    """One link to all that can be done; where the cause has acts of its own, one for each, which the page then shows first."""
    if not has_own_acts(alert):
        return (Link(_("Acknowledge or snooze"), url),)
    return tuple(Link(str(act.label), f"{url}?act={act.name}") for act in acts_of(alert).values())


def _title(channel: Channel, event: AlertEvent) -> str:
    if event.kind == Kind.ESCALATED and is_escalated_to(channel, event):
        return _("Escalated to you: %(what)s")
    if event.kind == Kind.WOKE:
        return str(WOKE_TITLES.get(event.values.get("why", ""), TITLES[Kind.WOKE]))
    return str(TITLES[event.kind])


def summary(channel: Channel, rows: Sequence[Delivery], *, language: str, now: datetime) -> Message:
    """Several alerts in one message, as they stand after their newest event."""
    alerts = sorted((row.alert for row in rows if row.alert), key=lambda alert: (-RANKS[alert.severity], alert.pk))
    still = [alert for alert in alerts if alert.is_open]
    worst = (still or alerts)[0].severity
    rest = len(alerts) - NAMED
    more = [ngettext("and %(n)d more", "and %(n)d more", rest) % {"n": rest}] if rest > 0 else []
    return Message(
        key=_key(rows[0]),
        thread="",
        event="summary",
        severity=worst,
        severity_word=str(Severity(worst).label) if still else _("Resolved"),
        title=_counted(alerts),
        lines=[*(_told(alert) for alert in alerts[:NAMED]), *more],
        facts=_money_facts(still, now),
        remedy="",
        link=Link(_("Open in Rackrent"), page_url(channel.team)),
        sent_at=now,
        is_resolved=not still,
        language=language,
        data={"alerts": [data_of(row.alert, row.event, now) for row in rows if row.alert and row.event]},
    )


def test_message(channel: Channel, row: Delivery, *, language: str, now: datetime) -> Message:
    return Message(
        key=_key(row),
        thread="",
        event="test",
        severity=Severity.NOTE,
        severity_word=_("Test"),
        title=_("Rackrent reaches this channel"),
        lines=[_("A test of the channel %(name)s of %(team)s.") % {"name": channel.name, "team": channel.team.name}],
        facts=[],
        remedy=_("There is nothing to do."),
        link=Link(_("Open in Rackrent"), page_url(channel.team)),
        sent_at=now,
        language=language,
    )


def thread_of(event: AlertEvent) -> str:
    """One course of one alert: when it opens again it is another. That of the event, which may be sent when a later one has begun."""
    began = AlertEvent.objects.filter(alert=event.alert_id, kind__in=BEGINS, pk__lte=event.pk).count()
    return f"rackrent-{site_name()}-{event.alert_id}-{max(0, began - 1)}"


def data_of(alert: Alert, event: AlertEvent, now: datetime) -> dict[str, Any]:
    """For programs."""
    spent = alert.money_so_far(now)
    return {
        "alert_id": alert.pk,
        "team": alert.team.slug,
        "cause": alert.cause,
        "event": event.kind,
        "event_id": event.pk,
        "at": event.at.isoformat(),
        "machine": alert.instance.name if alert.instance else None,
        "account": alert.account.name if alert.account else None,
        "opened_at": alert.opened_at.isoformat(),
        "escalated_to": alert.escalated_to.get_username() if alert.escalated_to else None,
        "closed_at": alert.closed_at.isoformat() if alert.closed_at else None,
        "price_per_hour": None if alert.price_per_hour is None else str(alert.price_per_hour),
        "money_so_far": None if spent is None else str(spent.quantize(Decimal("0.01"))),
        "currency": alert.currency,
        "evidence": alert.evidence,
    }


def _lines(event: AlertEvent) -> list[str]:
    why = why_of(event.alert)
    said = [_("Evidence: %(words)s") % {"words": why}] if why else []
    if event.actor_label:
        said.append(_("By %(name)s") % {"name": actor_text(event.actor_label)})
    if to := str(event.values.get("to") or ""):
        said.append(_("Escalated to %(name)s") % {"name": to})
    if minutes := event.values.get("after_minutes"):
        said.append(unanswered_words(minutes))
    if note := str(event.values.get("note") or ""):
        said.append(note)
    return said


def _facts(alert: Alert, now: datetime) -> list[tuple[str, str]]:
    began = timezone.localtime(alert.since)
    lasted = duration_text(((alert.closed_at or now) - alert.since).total_seconds())
    facts = [(pgettext("alert", "Since"), f"{began:%Y-%m-%d %H:%M} {began.tzname()} ({lasted})")]
    if alert.instance:
        place = " · ".join(part for part in (alert.instance.account.name, alert.instance.region) if part)
        facts.append((_("Machine"), f"{alert.instance.name} ({place})"))
    signals = alert.evidence.get("signals", 0)
    if isinstance(signals, int) and signals > 1:
        facts.append((_("Signals"), str(signals)))
    return [*facts, *_money_facts([alert], now)]


def _money_facts(alerts: Sequence[Alert], now: datetime) -> list[tuple[str, str]]:
    """Nothing is said of a price that nobody knows."""
    an_hour: defaultdict[str, Decimal] = defaultdict(Decimal)
    spent: defaultdict[str, Decimal] = defaultdict(Decimal)
    for alert in alerts:
        if alert.price_per_hour is not None and alert.is_open:
            an_hour[alert.currency] += alert.price_per_hour
        if (money := alert.money_so_far(now)) and money >= CENT:
            spent[alert.currency] += money
    facts = []
    if an_hour:
        facts.append((_("At stake"), _("%(money)s an hour") % {"money": amounts_text(an_hour)}))
    if spent:
        facts.append((_("Spent so far"), amounts_text(spent)))
    return facts


def _counted(alerts: Sequence[Alert]) -> str:
    """As in "312 alerts: 300 × went quiet, 12 × lost a GPU"."""
    kinds = Counter(alert.cause for alert in alerts).most_common(3)
    parts = ", ".join(f"{number} × {cause_of(cause).title}" for cause, number in kinds)
    text = ngettext("%(n)d alert: %(parts)s", "%(n)d alerts: %(parts)s", len(alerts))
    return text % {"n": len(alerts), "parts": parts}


def _told(alert: Alert) -> str:
    if not alert.is_open:
        return str(TITLES[Kind.RESOLVED]) % {"what": title_of(alert)}
    severity = str(Severity(alert.severity).label)
    if alert.price_per_hour is None:
        return f"{severity}: {title_of(alert)}"
    money = _("%(money)s an hour") % {"money": money_text(alert.price_per_hour, alert.currency)}
    return f"{severity}: {title_of(alert)} ({money})"


def _key(row: Delivery) -> str:
    return row.batch.hex if row.batch else f"delivery-{row.pk}"
