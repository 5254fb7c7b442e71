"""The rules: what each looks for, with the team's own thresholds."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from fleet.alerts.choices import update_rule
from fleet.alerts.escalation import policy_of
from fleet.alerts.preview import Preview, preview_rule
from fleet.alerts.preview_words import preview_text
from fleet.alerts.rule_form import RuleForm
from fleet.alerts.standing import Standing, standing_of, standings_of
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role


@require_safe
def rules(request: TeamRequest) -> HttpResponse:
    context = {
        "nav": "alerts",
        "standings": standings_of(request.team),
        "policy": policy_of(request.team),
        "may_act": request.membership.can(Role.OPERATOR),
    }
    return render(request, "alerts/rules.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def rule(request: TeamRequest, kind: str) -> HttpResponse:
    standing = _standing(request, kind)
    form = RuleForm(request.POST or None, standing=standing, initial=RuleForm.initial_of(standing))
    if request.method == "POST" and form.is_valid() and _save(request, standing, form):
        messages.success(request, _("Saved; it holds from the next look at the fleet on."))
        return redirect("alert_rules", request.team.slug)
    context = {"nav": "alerts", "standing": standing, "form": form, "preview": _preview(request, standing, form)}
    return render(request, "alerts/rule.html", context, status=422 if form.errors else 200)


@require_safe
@requires(Role.OPERATOR)
def rule_preview(request: TeamRequest, kind: str) -> HttpResponse:
    """How often it would have fired with what stands in the form; a script asks while people type."""
    standing = _standing(request, kind)
    form = RuleForm(request.GET, standing=standing)
    context = {"standing": standing, "preview": _preview(request, standing, form if form.is_valid() else None)}
    return render(request, "alerts/rule_preview.html", context)


def _standing(request: TeamRequest, kind: str) -> Standing:
    standing = standing_of(request.team, kind)
    if standing is None:
        raise Http404
    return standing


def _save(request: TeamRequest, standing: Standing, form: RuleForm) -> bool:
    kind, now = standing.rule.kind, timezone.now()
    try:
        update_rule(actor=Actor.of_page(request), team=request.team, kind=kind, now=now, **form.asked())
    except ValidationError as refusal:
        form.add_error(None, refusal)
        return False
    return True


def _preview(request: TeamRequest, standing: Standing, form: RuleForm | None) -> str:
    """In words; "" while what is typed makes no sense."""
    if form is None or (form.is_bound and not form.is_valid()):
        return ""
    asked: dict[str, Any] = {"thresholds": standing.own_thresholds, "for_seconds": standing.own_for_seconds}
    if form.is_bound:
        asked = {"thresholds": form.thresholds(), "for_seconds": form.cleaned_data["for_seconds"]}
    found: Preview = preview_rule(team=request.team, kind=standing.rule.kind, now=timezone.now(), **asked)
    return preview_text(found)
