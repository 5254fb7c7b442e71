"""Members and the links that let new ones in."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.errors import TeamsError
from fleet.teams.forms import InvitationForm, RoleForm
from fleet.teams.invitations import create_invitation, revoke_invitation
from fleet.teams.members import change_role, remove_member
from fleet.teams.models import Invitation, Membership, Role


@require_safe
def members(request: TeamRequest) -> HttpResponse:
    return draw(request, InvitationForm(initial={"role": Role.VIEWER}))


def draw(request: TeamRequest, form: InvitationForm, link: str = "", status: int = 200) -> HttpResponse:
    found = Membership.objects.filter(team=request.team).select_related("user").order_by("user__username")
    waiting = Invitation.objects.none()
    if request.membership.can(Role.ADMIN):
        waiting = Invitation.objects.filter(team=request.team, accepted_at=None, revoked_at=None)
        waiting = waiting.select_related("created_by")
    context = {
        "nav": "settings",
        "tab": "members",
        "members": found,
        "invitations": waiting.filter(expires_at__gt=timezone.now()).order_by("expires_at"),
        "roles": Role.choices,
        "form": form,
        "link": link,
    }
    return render(request, "settings/members.html", context, status=status)


@require_POST
@requires(Role.ADMIN)
@never_cache
def invite(request: TeamRequest) -> HttpResponse:
    """Answers with the page that shows the link: it is nowhere else, so there is no address to come back to."""
    form = InvitationForm(request.POST)
    if not form.is_valid():
        return draw(request, form, status=422)
    _invitation, new = create_invitation(
        actor=Actor.of_page(request), team=request.team, role=form.role_given(), email=form.cleaned_data["email"]
    )
    link = public_address(request, reverse("join_link", args=[new.secret]))
    return draw(request, InvitationForm(initial={"role": Role.VIEWER}), link=link, status=201)


@require_POST
@requires(Role.ADMIN)
def withdraw_invitation(request: TeamRequest, invitation_id: int) -> HttpResponse:
    invitation = get_object_or_404(Invitation, pk=invitation_id, team=request.team)
    if revoke_invitation(actor=Actor.of_page(request), invitation=invitation):
        messages.success(request, _("The link does not work any more."))
    return redirect("members", request.team.slug)


@require_POST
@requires(Role.ADMIN)
def set_role(request: TeamRequest, user_id: int) -> HttpResponse:
    membership = get_object_or_404(Membership, team=request.team, user_id=user_id)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("Choose one of the roles: viewer, operator or admin."))
        return redirect("members", request.team.slug)
    try:
        change_role(actor=Actor.of_page(request), membership=membership, role=form.role_given())
    except TeamsError as error:
        messages.error(request, str(error))
    return redirect("members", request.team.slug)


@require_POST
@requires(Role.ADMIN)
def remove(request: TeamRequest, user_id: int) -> HttpResponse:
    membership = get_object_or_404(Membership, team=request.team, user_id=user_id)
    return end_membership(request, membership, "members")


@require_POST
@requires(Role.VIEWER)
def leave(request: TeamRequest) -> HttpResponse:
    membership = get_object_or_404(Membership, team=request.team, user=request.user)
    return end_membership(request, membership, "team_settings")


def end_membership(request: TeamRequest, membership: Membership, back_to: str) -> HttpResponse:
    try:
        remove_member(actor=Actor.of_page(request), membership=membership)
    except TeamsError as error:
        messages.error(request, str(error))
        return redirect(back_to, request.team.slug)
    # Whoever left sees nothing of this team any more.
    return redirect("home") if membership.user_id == request.user.pk else redirect(back_to, request.team.slug)


def public_address(request: HttpRequest, path: str) -> str:
    return f"{settings.PUBLIC_URL}{path}" if settings.PUBLIC_URL else request.build_absolute_uri(path)
