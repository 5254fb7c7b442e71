"""Settings, Channels: where messages go, who hears what, what was sent, and one's own calendar."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from fleet.alerts.causes import cause_of
from fleet.alerts.channels import manage
from fleet.alerts.channels.calendar import make_feed, revoke_feed
from fleet.alerts.channels.forms import ChannelForm, RouteForm
from fleet.alerts.channels.health import health_of
from fleet.alerts.channels.links import base_url
from fleet.alerts.channels.models import CalendarFeed, Channel, Delivery, DeliveryState, Route
from fleet.alerts.channels.senders.registry import SENDERS
from fleet.alerts.channels.words import failure_text
from fleet.alerts.models import Severity
from fleet.alerts.words import title_of
from fleet.panels import Context
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role

LOG_LENGTH = 50


@require_safe
def channels(request: TeamRequest) -> HttpResponse:
    return _listed(request)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.VIEWER)
def channel_new(request: TeamRequest, kind: str) -> HttpResponse:
    """A viewer adds channels of their own."""
    sender = SENDERS.get(kind)
    if sender is None:
        raise Http404
    _refuse_guests(request)
    shares = request.membership.can(Role.OPERATOR)
    form = ChannelForm(request.POST or None, sender=sender, may_share=shares)
    if request.method == "POST" and form.is_valid():
        own = not shares or form.cleaned_data["own"]
        try:
            channel = manage.add_channel(
                actor=Actor.of_page(request), team=request.team, kind=kind, name=form.cleaned_data["name"],
                typed=form.typed(), owner=request.user if own else None,
            )  # fmt: skip
        except manage.ChannelError as error:
            form.add_error(error.field if error.field in form.fields else None, str(error.text))
        else:
            messages.success(request, _("Added. Send a test to see that it arrives."))
            return redirect("channel", request.team.slug, channel.pk)
    return _draw(request, "alerts/channels/new.html", form, sender=sender, own_only=not shares)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.VIEWER)
def channel(request: TeamRequest, channel_id: int) -> HttpResponse:
    found = _changeable(request, channel_id)
    sender = SENDERS.get(found.kind)
    if sender is None:
        raise Http404
    form = ChannelForm(request.POST or None, sender=sender, channel=found)
    if request.method == "POST" and form.is_valid():
        name, enabled = form.cleaned_data["name"], form.cleaned_data["enabled"]
        try:
            manage.update_channel(
                actor=Actor.of_page(request), channel=found, name=name, enabled=enabled, typed=form.typed()
            )
        except manage.ChannelError as error:
            form.add_error(error.field if error.field in form.fields else None, str(error.text))
        else:
            messages.success(request, _("Saved."))
            return redirect("channel", request.team.slug, channel_id)
    return _draw(request, "alerts/channels/channel.html", form, **_shown(found))


@require_POST
@requires(Role.VIEWER)
def channel_test(request: TeamRequest, channel_id: int) -> HttpResponse:
    found = _changeable(request, channel_id)
    try:
        manage.test_channel(actor=Actor.of_page(request), channel=found, now=timezone.now())
    except manage.ChannelError as error:
        messages.error(request, str(error.text))
    else:
        messages.success(request, _("A test is on its way; the log says what came of it."))
    return redirect("channel", request.team.slug, channel_id)


@require_POST
@requires(Role.VIEWER)
def channel_remove(request: TeamRequest, channel_id: int) -> HttpResponse:
    if manage.remove_channel(actor=Actor.of_page(request), channel=_changeable(request, channel_id)):
        messages.success(request, _("Removed, with its log."))
    return redirect("channels", request.team.slug)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.VIEWER)
def route_new(request: TeamRequest, channel_id: int) -> HttpResponse:
    return _route_form(request, _changeable(request, channel_id), None)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.VIEWER)
def route_edit(request: TeamRequest, route_id: int) -> HttpResponse:
    route = _route(request, route_id)
    return _route_form(request, route.channel, route)


@require_POST
@requires(Role.VIEWER)
def route_remove(request: TeamRequest, route_id: int) -> HttpResponse:
    route = _route(request, route_id)
    manage.remove_route(actor=Actor.of_page(request), route=route)
    return redirect("channel", request.team.slug, route.channel_id)


def _route(request: TeamRequest, route_id: int) -> Route:
    """Whoever may not change its channel may not change it."""
    route = get_object_or_404(Route, pk=route_id, channel__team=request.team)
    route.channel = _changeable(request, route.channel_id)
    return route


def _route_form(request: TeamRequest, found: Channel, route: Route | None) -> HttpResponse:
    form = RouteForm(request.POST or None, team=request.team, route=route, is_own=found.owner_id is not None)
    if request.method == "POST" and form.is_valid():
        try:
            manage.save_route(actor=Actor.of_page(request), channel=found, words=form.words(), route=route)
        except manage.ChannelError as error:
            form.add_error(error.field, str(error.text))
        else:
            messages.success(request, _("Saved."))
            return redirect("channel", request.team.slug, found.pk)
    return _draw(request, "alerts/channels/route.html", form, channel=found, route=route)


@require_POST
@requires(Role.VIEWER)
def calendar_make(request: TeamRequest) -> HttpResponse:
    """The address is shown once, in the answer itself."""
    _refuse_guests(request)
    secret = make_feed(actor=Actor.of_page(request), team=request.team, user=request.user, now=timezone.now())
    return _listed(request, calendar_url=f"{base_url()}/calendar/{secret}.ics")


@require_POST
@requires(Role.VIEWER)
def calendar_revoke(request: TeamRequest) -> HttpResponse:
    if revoke_feed(actor=Actor.of_page(request), team=request.team, user=request.user):
        messages.success(request, _("Your calendar address of this team works no more."))
    return redirect("channels", request.team.slug)


def channels_panel(request: TeamRequest) -> Context:
    """Beside the inbox: how the channels did lately."""
    return {"channels": health_of(_visible(request), timezone.now())}


def _visible(request: TeamRequest) -> QuerySet[Channel]:
    """The team's, and one's own."""
    mine = Q(owner=None) | Q(owner=request.user)
    return Channel.objects.filter(mine, team=request.team).select_related("owner", "team").order_by("owner", "name")


def _changeable(request: TeamRequest, channel_id: int) -> Channel:
    found = get_object_or_404(_visible(request), pk=channel_id)
    if found.owner_id is None and not request.membership.can(Role.OPERATOR):
        raise PermissionDenied(Role.OPERATOR.value)
    return found


def _refuse_guests(request: TeamRequest) -> None:
    """Everybody may look at the sandbox; nothing there is their own."""
    if request.membership.pk is None:
        raise PermissionDenied(Role.OPERATOR.value)


def _listed(request: TeamRequest, **more: Any) -> HttpResponse:
    context = {
        "channels": health_of(_visible(request), timezone.now()),
        "senders": list(SENDERS.values()),
        "feed": CalendarFeed.objects.filter(team=request.team, user=request.user).first(),
        "operates": request.membership.can(Role.OPERATOR),
        "is_member": request.membership.pk is not None,
        **more,
    }
    response = render(request, "alerts/channels/channels.html", {"nav": "settings", "tab": "channels", **context})
    if "calendar_url" in more:
        response["Cache-Control"] = "no-store"
    return response


def _shown(found: Channel) -> dict[str, Any]:
    log = Delivery.objects.filter(channel=found).select_related("event", "alert__instance", "alert__account")
    (health,) = health_of([found], timezone.now())
    return {
        "channel": found,
        "health": health,
        "gathers": SENDERS[found.kind].gathers,
        "routes": [_said(route) for route in found.routes.prefetch_related("projects").order_by("pk")],
        "log": [_line(row) for row in log.order_by("-pk")[:LOG_LENGTH]],
    }


def _said(route: Route) -> Route:
    """With its lists as people read them."""
    route.severity_words = ", ".join(str(Severity(name).label) for name in route.severities)  # type: ignore[attr-defined]  # for the page
    route.cause_words = ", ".join(str(cause_of(name).title) for name in route.causes)  # type: ignore[attr-defined]  # for the page
    return route


def _line(row: Delivery) -> dict[str, Any]:
    bad = row.state in {DeliveryState.DEAD, DeliveryState.FAILED}
    return {"row": row, "what": title_of(row.alert) if row.alert else _("Test"), "why": failure_text(row.error) if row.error else "", "bad": bad}  # fmt: skip


def _draw(request: TeamRequest, template: str, form: Any, **more: Any) -> HttpResponse:
    context = {"nav": "settings", "tab": "channels", "form": form, **more}
    return render(request, template, context, status=422 if form.errors else 200)
