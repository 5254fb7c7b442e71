"""The sign-in page. Wrong passwords are counted by django-axes, which also locks; see views/errors.py."""

from __future__ import annotations

from typing import Any

from axes.helpers import get_failure_limit
from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpResponse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.states import GpuState
from fleet.teams.form_throttles import throttled


@method_decorator(throttled("login", "30/min"), name="dispatch")
class SignIn(LoginView):
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Without "Stay signed in" the session ends with the browser."""
        response = super().form_valid(form)
        if "stay" not in self.request.POST:
            self.request.session.set_expiry(0)
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        # Not 200: scripts and password managers can tell that nobody was signed in.
        return self.render_to_response(self.get_context_data(form=form), status=422)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        context["days"] = settings.SESSION_COOKIE_AGE // 86_400
        context["oidc_label"] = settings.OIDC_ISSUER and (settings.OIDC_LABEL or _("Use the company’s sign-in"))
        context["states"] = list(GpuState)
        if context["form"].errors:
            context["wrong"] = self.what_is_wrong(context["form"])
        return context

    def what_is_wrong(self, form: AuthenticationForm) -> str:
        """Says the same for a name that nobody has: who has an account here is not told."""
        if "username" in form.errors or "password" in form.errors:
            return _("Fill in user name and password.")
        # Counted by django-axes while it refused; absent where it did not count (an empty form).
        tried = getattr(self.request, "axes_failures_since_start", None)
        message = _("That name and password do not fit together.")
        if tried is None:
            return message
        left = get_failure_limit(self.request, None) - tried
        tries = ngettext("%(n)s try left.", "%(n)s tries left.", left) % {"n": left}
        return f"{message} {tries}"
