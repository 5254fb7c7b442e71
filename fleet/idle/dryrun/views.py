"""Idle, Policies, dry run: one policy tried on the past, and the window that history recommends for it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from fleet.idle.dryrun.dry_run import Covered, covered_by
from fleet.idle.dryrun.forms import Asked, DryRunForm
from fleet.idle.dryrun.kept import is_kept, may_begin
from fleet.idle.dryrun.recommend import recommend
from fleet.idle.dryrun.shown import controls_of, page_of
from fleet.idle.dryrun.tasks import read_history
from fleet.idle.policies.models import IdlePolicy
from fleet.panels import Context
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role

# GPUs times days that a page reads while somebody waits: a second or two. More is read aside.
READ_AT_ONCE = 3_000


@require_safe
def dry_run_page(request: TeamRequest, pk: int) -> HttpResponse:
    policy = _policy_or_404(request, pk)
    other = request.GET.get("policy", "")
    if other.isdecimal() and int(other) != pk:
        return redirect("idle_dry_run", request.team.slug, int(other))
    form = DryRunForm(request.GET)
    asked = Asked.of(policy, form.cleaned_data if form.is_valid() else {})
    context: Context = {
        "nav": "idle",
        "tab": "idle_policies",
        "policy": policy,
        "form": form,
        "may_change": request.membership.can(Role.ADMIN),
        "may_operate": request.membership.can(Role.OPERATOR),
        **controls_of(policy, asked, request.team),
    }
    covered = covered_by(policy)
    context["covered"] = covered
    if not covered.machines:
        return render(request, "idle/dryrun/page.html", context)
    if _is_read_aside(policy, covered, asked.days):
        return render(request, "idle/dryrun/page.html", context | {"waits": True})
    return render(request, "idle/dryrun/page.html", context | page_of(policy, asked, now=timezone.now()))


@require_POST
@requires(Role.OPERATOR)
def recommend_now(request: TeamRequest, pk: int) -> HttpResponse:
    policy = _policy_or_404(request, pk)
    found = recommend(policy=policy, now=timezone.now(), actor=Actor.of_page(request))
    if found.is_new:
        messages.success(request, _("Reckoned anew, and kept with the policy."))
    else:
        messages.info(request, _("The policy was changed meanwhile. Look at it again."))
    return redirect("idle_dry_run", request.team.slug, pk)


def _is_read_aside(policy: IdlePolicy, covered: Covered, days: int) -> bool:
    """A large fleet's past is read by a task; the page asks again until it is there."""
    if covered.gpus * days <= READ_AT_ONCE or is_kept(covered.machines, covered.ways, days=days):
        return False
    if may_begin(covered.machines, covered.ways, days=days):
        read_history.delay(policy.pk, days)
    return True


def _policy_or_404(request: TeamRequest, pk: int) -> IdlePolicy:
    rows = IdlePolicy.objects.select_related("team", "project", "account").filter(removed_at=None)
    return get_object_or_404(rows, pk=pk, team=request.team)
