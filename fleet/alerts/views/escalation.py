"""When urgent alerts that nobody answers escalate by themselves, and to whom."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from fleet.alerts.escalation import policy_of, update_escalation
from fleet.alerts.forms import EscalationForm
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def escalation(request: TeamRequest) -> HttpResponse:
    form = EscalationForm(request.POST or None, policy=policy_of(request.team))
    if request.method == "POST" and form.is_valid() and _save(request, form):
        messages.success(request, _("Saved; it holds from the next look at the fleet on."))
        return redirect("alert_rules", request.team.slug)
    context = {"nav": "alerts", "form": form}
    return render(request, "alerts/escalation.html", context, status=422 if form.errors else 200)


def _save(request: TeamRequest, form: EscalationForm) -> bool:
    try:
        update_escalation(actor=Actor.of_page(request), team=request.team, now=timezone.now(), **form.cleaned_data)
    except ValidationError as refusal:
        form.add_error(None, refusal)
        return False
    return True
