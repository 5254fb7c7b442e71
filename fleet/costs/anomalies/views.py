"""Unusual money: what is open, what each rule looks for and would have found, and what there was."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from fleet.costs.anomalies.forms import AnomalyRuleForm
from fleet.costs.anomalies.load import load_facts
from fleet.costs.anomalies.shown import Line, anomalies_of, fired_with, shown_rules
from fleet.costs.anomalies.standing import Standing, standing_of, update_anomaly_rule
from fleet.costs.anomalies.words import RULE_WORDS, fired_text
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role


@require_safe
def anomalies(request: TeamRequest) -> HttpResponse:
    now = timezone.now()
    found, past = anomalies_of(team=request.team, now=now)
    context = {
        "nav": "costs",
        "tab": "anomalies",
        "lines": [Line.of(alert) for alert in found],
        "past": [Line.of(alert) for alert in past],
        "rules": shown_rules(team=request.team, now=now),
        "may_act": request.membership.can(Role.OPERATOR),
    }
    return render(request, "costs/anomalies.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def anomaly_rule(request: TeamRequest, kind: str) -> HttpResponse:
    standing = _standing(request, kind)
    form = AnomalyRuleForm(request.POST or None, standing=standing)
    if request.method == "POST" and form.is_valid() and _save(request, kind, form):
        messages.success(request, _("Saved; it holds from the next look at the money on."))
        return redirect("costs_anomalies", request.team.slug)
    preview = "" if form.errors else _preview(request, standing, form)
    context = {"nav": "costs", "standing": standing, "words": RULE_WORDS[kind], "form": form, "preview": preview}
    return render(request, "costs/anomaly_rule.html", context, status=422 if form.errors else 200)


@require_safe
@requires(Role.OPERATOR)
def anomaly_preview(request: TeamRequest, kind: str) -> HttpResponse:
    """How often it would have fired with what stands in the form; a script asks while people type."""
    standing = _standing(request, kind)
    form = AnomalyRuleForm(request.GET, standing=standing)
    preview = _preview(request, standing, form) if form.is_valid() else ""
    return render(request, "alerts/rule_preview.html", {"preview": preview})


def _standing(request: TeamRequest, kind: str) -> Standing:
    standing = standing_of(request.team, kind)
    if standing is None:
        raise Http404
    return standing


def _save(request: TeamRequest, kind: str, form: AnomalyRuleForm) -> bool:
    try:
        update_anomaly_rule(
            actor=Actor.of_page(request),
            team=request.team,
            kind=kind,
            now=timezone.now(),
            enabled=form.cleaned_data["enabled"],
            thresholds=form.thresholds(),
        )
    except ValidationError as refusal:
        form.add_error(None, refusal)
        return False
    return True


def _preview(request: TeamRequest, standing: Standing, form: AnomalyRuleForm) -> str:
    own = form.thresholds() if form.is_bound else standing.own
    facts = load_facts(team=request.team, now=timezone.now(), look_back=True)
    return fired_text(fired_with(standing, facts, standing.rule.limits(own)))
