"""Pages for people who are not signed in: what a link in a message opens, and the calendar feed.

The signed address is the only proof that anybody has, so no cookie counts here: the form works in a mail program's own window, and there
is nothing that another site could borrow.
"""

from __future__ import annotations

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone, translation
from django.utils.cache import patch_response_headers
from django.utils.formats import date_format
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from fleet.alerts.channels import calendar
from fleet.alerts.channels.acting import Linked, act_by_link, acts_of, follow
from fleet.alerts.channels.links import LinkError
from fleet.alerts.channels.models import CalendarFeed
from fleet.alerts.words import title_of, why_of
from fleet.teams.addresses import client_ip
from fleet.teams.form_throttles import FormThrottle, slow_down, throttled

FEED_SECONDS = 900


@csrf_exempt
@login_not_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@throttled("alert_link", "30/min")
def alert_link(request: HttpRequest, token: str) -> HttpResponse:
    try:
        linked = follow(token)
    except LinkError as error:
        return _private(render(request, "alerts/channels/link_over.html", {"why": error.code}, status=410))
    if request.method == "POST":
        return _act(request, linked, request.POST.get("action", ""))
    return _draw(request, linked)


def _act(request: HttpRequest, linked: Linked, action: str) -> HttpResponse:
    if action not in acts_of(linked.alert):
        return _draw(request, linked, status=422)
    try:
        done = act_by_link(linked=linked, action=action, ip_address=client_ip(request), now=timezone.now())
    except ValidationError as error:
        return _draw(request, linked, problem=" ".join(error.messages), status=422)
    return _draw(request, linked, done=done, action=action)


def _draw(
    request: HttpRequest,
    linked: Linked,
    *,
    done: bool | None = None,
    action: str = "",
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    alert, acts = linked.alert, acts_of(linked.alert)
    until = date_format(timezone.localtime(alert.snoozed_until), "Y-m-d H:i T") if alert.snoozed_until else ""
    # The one that the message's button named comes first; pressing it is still to be done here.
    chosen = sorted(acts, key=lambda name: name != request.GET.get("act", ""))
    context = {
        "alert": alert,
        "what": title_of(alert),
        "evidence": why_of(alert),
        "over": linked.is_over,
        "acts": [] if linked.is_over else [(name, acts[name].label, name in linked.used) for name in chosen],
        "done": done,
        "said": str(acts[action].done) % {"until": until} if done else "",
        "problem": problem,
    }
    return _private(render(request, "alerts/channels/link.html", context, status=status))


@login_not_required
@require_safe
def calendar_feed(request: HttpRequest, secret: str) -> HttpResponse:
    throttle = FormThrottle("calendar", "60/min")
    if not throttle.allow_request(request, calendar_feed):  # type: ignore[arg-type]
        return slow_down(request, throttle.wait())  # type: ignore[return-value]
    feed = calendar.find_feed(secret)
    if feed is None:
        raise Http404
    return _private(_feed(feed))


def _feed(feed: CalendarFeed) -> HttpResponse:
    with translation.override(feed.user.language or "en"):
        response = HttpResponse(calendar.feed_text(feed), content_type="text/calendar; charset=utf-8")
    response["Content-Disposition"] = 'inline; filename="rackrent.ics"'
    patch_response_headers(response, FEED_SECONDS)
    response["Cache-Control"] = f"private, max-age={FEED_SECONDS}"
    return response


def _private(response: HttpResponse) -> HttpResponse:
    """The address is a secret: it goes into no Referer header and no search engine."""
    response["Referrer-Policy"] = "no-referrer"
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response
