from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST
from django.views.i18n import set_language

from fleet.teams.audit import Actor
from fleet.teams.models import User
from fleet.teams.people import choose_language


@login_not_required
@require_POST
def switch_language(request: HttpRequest) -> HttpResponse:
    """Kept in the account of who is signed in, and in a cookie for who is not."""
    language = request.POST.get("language", "")
    if isinstance(request.user, User) and language in dict(settings.LANGUAGES):
        choose_language(actor=Actor.of_page(request), user=request.user, language=language)
    return set_language(request)
