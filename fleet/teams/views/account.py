"""A person's own account: who they are, their password, where they are signed in."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST, require_safe

from fleet.teams.access import PersonRequest
from fleet.teams.audit import Actor
from fleet.teams.errors import TeamsError
from fleet.teams.form_throttles import throttled
from fleet.teams.forms import PasswordForm, ProfileForm
from fleet.teams.models import BrowserSession, Membership, User
from fleet.teams.people import change_password, close_account, end_other_sessions, end_session, update_profile


@require_safe
def account(request: PersonRequest) -> HttpResponse:
    return draw(request)


def draw(
    request: PersonRequest,
    *,
    profile: ProfileForm | None = None,
    password: PasswordForm | None = None,
    status: int = 200,
) -> HttpResponse:
    sessions = BrowserSession.objects.filter(user=request.user, expire_date__gt=timezone.now())
    context = {
        "profile": profile or ProfileForm(initial=profile_of(request.user)),
        "password": password or PasswordForm(),
        "sessions": sessions.order_by("-signed_in_at"),
        "this_session": request.session.session_key,
        "memberships": Membership.objects.filter(user=request.user).select_related("team").order_by("team__name"),
        "zones": sorted(available_timezones()),
        "has_password": request.user.has_usable_password(),
    }
    return render(request, "teams/account.html", context, status=status)


def profile_of(user: User) -> dict[str, Any]:
    return {
        "username": user.username,
        "name": user.get_full_name(),
        "email": user.email,
        "language": user.language,
        "time_zone": user.time_zone,
        "shows_sandbox": not user.hides_sandbox,
    }


@require_POST
def save_profile(request: PersonRequest) -> HttpResponse:
    form = ProfileForm(request.POST)
    if not form.is_valid():
        return draw(request, profile=form, status=422)
    try:
        update_profile(actor=Actor.of_page(request), user=request.user, **form.cleaned_data)
    except TeamsError as error:
        form.add_error(error.field, str(error))
        return draw(request, profile=form, status=422)
    messages.success(request, _("Saved."))
    return redirect("account")


@require_POST
@sensitive_post_parameters()
@throttled("password", "10/min")
def save_password(request: PersonRequest) -> HttpResponse:
    form = PasswordForm(request.POST)
    if not form.is_valid() or not set_password(request, form):
        return draw(request, password=form, status=422)
    messages.success(request, _("The password is new. Other browsers were signed out."))
    return redirect("account")


def set_password(request: PersonRequest, form: PasswordForm) -> bool:
    """False with what is wrong said at the field."""
    user = request.user
    if not user.check_password(form.cleaned_data["old"]):
        form.add_error("old", _("That is not your present password."))
        return False
    try:
        change_password(
            actor=Actor.of_page(request),
            user=user,
            password=form.cleaned_data["new"],
            keep_session=request.session.session_key,
        )
    except ValidationError as error:
        form.add_error("new", error)
        return False
    # The session is bound to a hash of the password; without this, its own browser would be signed out, too.
    update_session_auth_hash(request, user)
    return True


@require_POST
def end_one_session(request: PersonRequest) -> HttpResponse:
    """`session` is the hash of its key: the key itself would open it."""
    sessions = BrowserSession.objects.filter(user=request.user)
    wanted = next((row for row in sessions if row.public_id == request.POST.get("session")), None)
    if wanted:
        end_session(actor=Actor.of_page(request), session=wanted)
        messages.success(request, _("That browser is signed out."))
    return redirect("account")


@require_POST
def end_sessions(request: PersonRequest) -> HttpResponse:
    end_other_sessions(actor=Actor.of_page(request), user=request.user, keep_session=request.session.session_key)
    messages.success(request, _("All other browsers are signed out."))
    return redirect("account")


@require_POST
def close(request: PersonRequest) -> HttpResponse:
    try:
        close_account(actor=Actor.of_page(request), user=request.user)
    except TeamsError as error:
        messages.error(request, str(error))
        return redirect("account")
    logout(request)
    return redirect("login")
