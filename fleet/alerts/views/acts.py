"""What people do with alerts on pages, one or several at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from fleet.alerts.inbox import PAGE_SIZE, Wanted
from fleet.alerts.models import Alert
from fleet.alerts.people import acknowledge_alert, escalate_alert, resolve_note, snooze_alert, wake_alert
from fleet.alerts.snoozes import SNOOZES, snooze_end
from fleet.alerts.views.inbox import draw_inbox
from fleet.teams.access import TeamRequest
from fleet.teams.audit import Actor
from fleet.teams.fields import one_line
from fleet.teams.models import User

BIGGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Act:
    """What was asked for: whether it changed anything of one alert, and what to say of so many."""

    on: Callable[[Alert], bool]
    said: Callable[[int], str]


@require_POST
def alert_act(request: TeamRequest) -> HttpResponse:
    """`do` says what, `alert` (once or several times) with which. Answers with what the person looked at."""
    now = timezone.now()
    said = _answer(request, now)
    if request.htmx:
        return draw_inbox(request, Wanted.of(request.GET), now=now, say=said)
    messages.info(request, said)
    return redirect(_back(request))


def chosen_act(request: TeamRequest, now: datetime) -> Act | None:
    word, _space, more = request.POST.get("do", "").partition(" ")
    actor = Actor.of_page(request)
    if word == "acknowledge":
        note = one_line(request.POST.get("note", ""))
        return Act(lambda alert: acknowledge_alert(actor=actor, alert=alert, now=now, note=note), _acknowledged)
    if word == "snooze" and more in SNOOZES:
        until = snooze_end(more, now=now, zone=timezone.get_current_timezone())
        return Act(lambda alert: snooze_alert(actor=actor, alert=alert, now=now, until=until), _snoozed)
    if word == "wake":
        return Act(lambda alert: wake_alert(actor=actor, alert=alert, now=now), _woken)
    if word == "escalate":
        person = _member(request, more) if more else None
        return Act(lambda alert: escalate_alert(actor=actor, alert=alert, now=now, person=person), _escalated)
    if word == "resolve":
        return Act(lambda alert: resolve_note(actor=actor, alert=alert, now=now), _put_away)
    return None


def _member(request: TeamRequest, pk: str) -> User:
    """Raises ValidationError: they may have left since the page was drawn."""
    found = (
        User.objects.filter(memberships__team=request.team, pk=int(pk)).first()
        if pk.isdecimal() and len(pk) < 19
        else None
    )
    if found is None:
        raise ValidationError(_("This person is no longer in the team."))
    return found


def _acknowledged(count: int) -> str:
    return ngettext("Acknowledged: reminders stop.", "%(n)d alerts acknowledged: reminders stop.", count) % {"n": count}


def _snoozed(count: int) -> str:
    return ngettext("Snoozed; it comes back.", "%(n)d alerts snoozed; they come back.", count) % {"n": count}


def _woken(count: int) -> str:
    return ngettext("It is back.", "%(n)d alerts are back.", count) % {"n": count}


def _escalated(count: int) -> str:
    return ngettext("Escalated.", "%(n)d alerts escalated.", count) % {"n": count}


def _put_away(count: int) -> str:
    return ngettext("Put away until it stops.", "%(n)d notes put away until they stop.", count) % {"n": count}


def _chosen(request: TeamRequest) -> list[Alert]:
    ids = [int(word) for word in request.POST.getlist("alert")[:PAGE_SIZE] if word.isascii() and word.isdigit()]
    known = [pk for pk in ids if pk <= BIGGEST_ID]
    return list(Alert.objects.filter(team=request.team, pk__in=known).select_related("team", "instance", "account"))


def _answer(request: TeamRequest, now: datetime) -> str:
    try:
        act = chosen_act(request, now)
        return _("Choose what to do with an alert.") if act is None else _do(act, _chosen(request))
    except ValidationError as refusal:
        return " ".join(refusal.messages)


def _do(act: Act, alerts: list[Alert]) -> str:
    if not alerts:
        return _("Select an alert first.")
    changed, refusals = 0, []
    for alert in alerts:
        try:
            changed += act.on(alert)
        except ValidationError as refusal:
            refusals += refusal.messages
    if refusals:
        done = [act.said(changed)] if changed else []
        return " ".join([*done, *dict.fromkeys(refusals)])
    return act.said(changed) if changed else _("Nothing changed: it was done already, or the alert has closed.")


def _back(request: TeamRequest) -> str:
    """The page of the alert, where it was done there; else the list."""
    ids = request.POST.getlist("alert")
    if request.GET.get("from") == "alert" and len(ids) == 1 and ids[0].isascii() and ids[0].isdigit():
        return reverse("alert", args=[request.team.slug, int(ids[0])])
    return f"{reverse('alerts', args=[request.team.slug])}?{Wanted.of(request.GET).query}"
