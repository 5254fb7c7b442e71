"""Accepting an invitation, for people with an account and for new ones.

Opening the link changes nothing (scanners of mail and chat open links, too). It moves the secret from the address into
the session, as its hash, so that it stays in no history and no Referer header.
"""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from fleet.teams.addresses import client_ip
from fleet.teams.audit import Actor
from fleet.teams.errors import InvitationUnusable, Taken, TeamsError
from fleet.teams.form_throttles import throttled
from fleet.teams.forms import RegistrationForm
from fleet.teams.invitations import accept_invitation, find_invitation, register_invited
from fleet.teams.models import Invitation, User
from fleet.teams.secrets import hash_token

INVITATION = "invitation"


@login_not_required
@never_cache
@require_safe
def join_link(request: HttpRequest, secret: str) -> HttpResponse:
    request.session[INVITATION] = hash_token(secret)
    return redirect("join")


@login_not_required
@never_cache
@require_http_methods(["GET", "POST"])
@throttled("join", "20/min")
def join(request: HttpRequest) -> HttpResponse:
    invitation = find_invitation(token_hash=request.session.get(INVITATION, ""), now=timezone.now())
    if invitation is None:
        return render(request, "teams/join_closed.html", status=410)
    if request.user.is_authenticated:
        return join_signed_in(request, invitation)
    return join_new(request, invitation)


def join_signed_in(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    if request.method == "GET":
        return draw(request, invitation)
    try:
        accept_invitation(actor=Actor.of_page(request), invitation=invitation, now=timezone.now())
    except TeamsError as error:
        messages.error(request, str(error))
        return draw(request, invitation, status=409)
    return enter(request, invitation)


def join_new(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    form = RegistrationForm(request.POST or None, initial={"email": invitation.email})
    if request.method == "GET" or not form.is_valid():
        return draw(request, invitation, form, status=200 if request.method == "GET" else 422)
    user = register(request, invitation, form)
    if user is None:
        return draw(request, invitation, form, status=422)
    # The new person proved the password by choosing it; several backends are there, so one is named.
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return enter(request, invitation)


def register(request: HttpRequest, invitation: Invitation, form: RegistrationForm) -> User | None:
    """The new person, or None with what is wrong said at the field."""
    try:
        return register_invited(
            invitation=invitation, ip_address=client_ip(request), now=timezone.now(), **form.cleaned_data
        )
    except ValidationError as error:
        form.add_error("password", error)
    except Taken as error:
        form.add_error(error.field, str(error))
    except InvitationUnusable as error:
        form.add_error(None, str(error))
    return None


def enter(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    request.session.pop(INVITATION, None)
    messages.success(request, _("You have joined %(team)s.") % {"team": invitation.team.name})
    return redirect("overview", invitation.team.slug)


def draw(
    request: HttpRequest, invitation: Invitation, form: RegistrationForm | None = None, status: int = 200
) -> HttpResponse:
    return render(request, "teams/join.html", {"invitation": invitation, "form": form}, status=status)
