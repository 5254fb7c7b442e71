"""What a person says of a stop on a page: later, not at all, or now. GET changes nothing; each POST acts once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from fleet.alerts.snoozes import snooze_end
from fleet.idle.shutdown.models import IdleStop
from fleet.idle.shutdown.people import LONGEST_SNOOZE, snooze_stop, stop_now, veto_stop
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.fields import one_line
from fleet.teams.models import Role

REASON_LENGTH = 200
# Of the snoozes that alerts have, those that say when.
CHOICES = ("1h", "4h", "tomorrow")


@require_POST
@requires(Role.OPERATOR)
def idle_stop_snooze(request: TeamRequest, pk: int) -> HttpResponse:
    """`for`: one of CHOICES."""
    stop, now = stop_of(request, pk), timezone.now()
    if end := end_of_choice(request, now):
        # Before nine in the morning the next one is more than a day away.
        until = min(end, now + LONGEST_SNOOZE)
        done = _("%(name)s is left alone until then.") % {"name": stop.instance.name}
        said(request, lambda: snooze_stop(actor=Actor.of_page(request), stop=stop, until=until, now=now), done)
    return back(request, stop)


def end_of_choice(request: TeamRequest, now: datetime) -> datetime | None:
    """None, with a message, where nothing that makes sense was chosen."""
    choice = request.POST.get("for", "")
    if choice not in CHOICES:
        messages.error(request, _("Say for how long: 1h, 4h or tomorrow. Nothing was changed."))
        return None
    return snooze_end(choice, now=now, zone=timezone.get_current_timezone())


def reason_of(request: TeamRequest) -> str:
    """Empty, with a message, where none was given."""
    reason = one_line(request.POST.get("reason", ""))[:REASON_LENGTH]
    if not reason:
        messages.error(request, _("Give a reason: it is kept and shown. Nothing was changed."))
    return reason


@require_POST
@requires(Role.OPERATOR)
def idle_stop_veto(request: TeamRequest, pk: int) -> HttpResponse:
    """`reason`: kept as the reason of a hold in the person's name."""
    stop, actor, now = stop_of(request, pk), Actor.of_page(request), timezone.now()
    if reason := reason_of(request):
        done = _("%(name)s is not stopped: you hold it.") % {"name": stop.instance.name}
        said(request, lambda: veto_stop(actor=actor, stop=stop, reason=reason, now=now), done)
    return back(request, stop)


@require_POST
@requires(Role.OPERATOR)
def idle_stop_now(request: TeamRequest, pk: int) -> HttpResponse:
    """The rest of the grace is given up; everything else is looked at as ever before the order."""
    stop, now = stop_of(request, pk), timezone.now()
    done = _("The grace of %(name)s is over.") % {"name": stop.instance.name}
    said(request, lambda: stop_now(actor=Actor.of_page(request), stop=stop, now=now), done)
    return back(request, stop)


def said(request: TeamRequest, act: Callable[[], bool], done: str) -> None:
    """Does it once, and says what became of it."""
    try:
        changed = act()
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return
    if changed:
        messages.success(request, done)
    else:
        messages.info(request, _("Nothing was changed: it had ended, or its provider was asked already."))


def stop_of(request: TeamRequest, pk: int) -> IdleStop:
    return get_object_or_404(IdleStop.objects.select_related("instance", "team"), pk=pk, team=request.team)


def back(request: TeamRequest, stop: IdleStop) -> HttpResponse:
    """To the page that it was asked on."""
    if request.POST.get("back") == "machine":
        return redirect("instance", request.team.slug, stop.instance_id)
    return redirect("idle", request.team.slug)
