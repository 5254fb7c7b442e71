"""Idle, Policies: what each says in a sentence, what it covers now, and the form in which admins write them."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from fleet.idle.policies.covering import machines_of
from fleet.idle.policies.forms import ZONES, PolicyForm
from fleet.idle.policies.models import IdlePolicy
from fleet.idle.policies.said import PolicySaid
from fleet.idle.policies.saving import move_policy, remove_policy, save_policy, tidied
from fleet.idle.policies.shown import RELATED, board_of, is_beyond
from fleet.idle.policies.words import more_words, sentence
from fleet.panels import Context
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role

# Of the machines that a policy would cover, so many are named beside its form.
NAMED = 12


@require_safe
def policies(request: TeamRequest) -> HttpResponse:
    context = {
        "nav": "idle",
        "tab": "idle_policies",
        "board": board_of(request.team, timezone.now()),
        "may_change": request.membership.can(Role.ADMIN),
    }
    return render(request, "idle/policies/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.ADMIN)
def policy_add(request: TeamRequest) -> HttpResponse:
    form = PolicyForm(request.POST or None, team=request.team)
    if request.method == "POST" and form.is_valid() and _saved(request, form, None):
        return redirect("idle_policies", request.team.slug)
    return _form_page(request, form, None)


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.ADMIN)
def policy_edit(request: TeamRequest, pk: int) -> HttpResponse:
    policy = _policy_or_404(request, pk)
    form = PolicyForm(request.POST or None, team=request.team, policy=policy)
    if request.method == "POST" and form.is_valid() and _saved(request, form, policy):
        return redirect("idle_policies", request.team.slug)
    return _form_page(request, form, policy)


@require_safe
@requires(Role.ADMIN)
def policy_preview(request: TeamRequest) -> HttpResponse:
    """What the values that stand in the form would say and cover; a script asks while people type."""
    form = PolicyForm(request.GET, team=request.team)
    form.fields["name"].required = False
    return render(request, "idle/policies/preview.html", {"preview": _preview(request, form)})


@require_POST
@requires(Role.ADMIN)
def policy_remove(request: TeamRequest, pk: int) -> HttpResponse:
    if remove_policy(actor=Actor.of_page(request), policy=_policy_or_404(request, pk), now=timezone.now()):
        messages.success(request, _("Removed. Its machines are judged by the next policy that covers them."))
    return redirect("idle_policies", request.team.slug)


@require_POST
@requires(Role.ADMIN)
def policy_move(request: TeamRequest, pk: int) -> HttpResponse:
    policy, up = _policy_or_404(request, pk), "up" in request.POST
    if not move_policy(actor=Actor.of_page(request), policy=policy, up=up, now=timezone.now()):
        messages.info(request, _("Nothing changed: there is no policy on that side of it."))
    return redirect("idle_policies", request.team.slug)


def _policy_or_404(request: TeamRequest, pk: int) -> IdlePolicy:
    rows = IdlePolicy.objects.select_related(*RELATED).filter(removed_at=None)
    return get_object_or_404(rows, pk=pk, team=request.team)


def _saved(request: TeamRequest, form: PolicyForm, policy: IdlePolicy | None) -> bool:
    try:
        save_policy(
            actor=Actor.of_page(request),
            team=request.team,
            said=form.said(),
            now=timezone.now(),
            policy=policy,
            confirmed=form.cleaned_data["confirmed"],
            delete_consent=form.cleaned_data["delete_consent"],
        )
    except ValidationError as refusal:
        form.add_refusal(refusal)
        return False
    messages.success(request, _("Saved. It counts from the next minute on."))
    return True


def _form_page(request: TeamRequest, form: PolicyForm, policy: IdlePolicy | None) -> HttpResponse:
    context = {
        "nav": "idle",
        "tab": "idle_policies",
        "form": form,
        "policy": policy,
        "zones": ZONES,
        "preview": _preview(request, form) if form.is_bound else _of(policy or _unwritten(request)),
    }
    return render(request, "idle/policies/edit.html", context, status=422 if form.errors else 200)


def _preview(request: TeamRequest, form: PolicyForm) -> Context | None:
    """None: something in the form is wrong."""
    if not form.is_valid():
        return None
    said = tidied(form.said())
    policy = IdlePolicy(team=request.team, **said.columns())
    return _shown(policy, left_out=said.excluded)


def _unwritten(request: TeamRequest) -> IdlePolicy:
    """What an empty form would say."""
    return IdlePolicy(team=request.team, **PolicySaid(name="").columns())


def _of(policy: IdlePolicy) -> Context:
    return _shown(policy, left_out=PolicySaid.of(policy).excluded)


def _shown(policy: IdlePolicy, *, left_out: frozenset[int]) -> Context:
    machines = [machine for machine in machines_of(policy) if machine.pk not in left_out]
    return {
        "sentence": sentence(policy, len(left_out)),
        "more": more_words(policy),
        "machines": machines[:NAMED],
        "rest": max(len(machines) - NAMED, 0),
        "count": len(machines),
        "beyond": sum(is_beyond(machine, policy) for machine in machines),
    }
