"""The report of a month before it goes out, or after it went: as it looks in a mail, who gets it, and a button to send it."""

from __future__ import annotations

from csp.constants import SELF
from csp.decorators import csp_replace
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.clickjacking import xframe_options_sameorigin
from django.views.decorators.http import require_POST, require_safe

from fleet.alerts.channels.senders.base import Outcome, Result
from fleet.alerts.channels.words import FAILURES
from fleet.costs.month import Month
from fleet.costs.reports.mail import html_of
from fleet.costs.reports.models import CostReportMail
from fleet.costs.reports.report import report_of
from fleet.costs.reports.sending import choose_report, readers_of, send_again, send_at
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.form_throttles import throttled
from fleet.teams.models import Role


@require_safe
def costs_report(request: TeamRequest, month: str) -> HttpResponse:
    asked = month_of(request, month)
    readers = readers_of(request.team)
    rows = CostReportMail.objects.filter(team=request.team, month=asked.first).select_related("user")
    context = {
        "nav": "costs",
        "tab": "costs",
        "month": asked,
        "has_report": report_of(team=request.team, month=asked) is not None,
        "readers": readers,
        "wants": request.user in readers,
        "mails": [(row, FAILURES.get(row.error, row.error)) for row in rows.order_by("user__username")],
        "send_at": send_at(asked),
    }
    return render(request, "costs/report.html", context)


@require_safe
@xframe_options_sameorigin
@csp_replace({"frame-ancestors": [SELF]})  # type: ignore[arg-type]  # our views take a TeamRequest, and more
def costs_report_mail(request: TeamRequest, month: str) -> HttpResponse:
    """The mail itself, as the page above shows it. A month without money has none, and leads to the page that says so."""
    report = report_of(team=request.team, month=month_of(request, month))
    if report is None:
        return redirect("costs_report", request.team.slug, month)
    return HttpResponse(html_of(report, team=request.team))


@require_POST
@requires(Role.VIEWER)
@throttled("cost_report", "10/h")
def costs_report_send(request: TeamRequest, month: str) -> HttpResponse:
    """To whoever asks, at their own address."""
    asked = month_of(request, month)
    if not request.user.email:
        messages.error(request, _("Your account has no e-mail address. Add one under Account."))
    else:
        outcome = send_again(
            actor=Actor.of_page(request), team=request.team, month=asked, user=request.user, now=timezone.now()
        )
        say(request, outcome)
    return redirect("costs_report", request.team.slug, str(asked))


def say(request: TeamRequest, outcome: Outcome | None) -> None:
    if outcome is None:
        messages.error(request, _("There was no money in this month: there is nothing to send."))
    elif outcome.result is Result.SENT:
        messages.success(request, _("Sent to %(address)s.") % {"address": request.user.email})
    else:
        why = FAILURES.get(outcome.code, outcome.code)
        messages.error(request, _("It could not be sent: %(why)s") % {"why": why})


@require_POST
@requires(Role.VIEWER)
def costs_report_wish(request: TeamRequest, month: str) -> HttpResponse:
    asked = month_of(request, month)
    wants = request.POST.get("wants") == "1"
    choose_report(actor=Actor.of_page(request), team=request.team, user=request.user, wants=wants)
    said = _("You get the report every month.") if wants else _("You no longer get the report.")
    messages.success(request, said)
    return redirect("costs_report", request.team.slug, str(asked))


def month_of(request: TeamRequest, name: str) -> Month:
    """404 for what is no month, or is still to come."""
    month = Month.of(request.team, now=timezone.now(), name=name)
    if str(month) != name:
        raise Http404
    return month
