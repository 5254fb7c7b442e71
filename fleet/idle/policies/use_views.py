"""How one machine is used: its panel, and the form behind it."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from fleet.idle.policies.covering import judged_by
from fleet.idle.policies.forms import UseForm
from fleet.idle.policies.models import MachineUse, UseMode
from fleet.idle.policies.uses import set_machine_use
from fleet.idle.policies.words import sentence
from fleet.inventory.models import Instance
from fleet.panels import Context
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role


def use_panel(request: TeamRequest, instance: Instance) -> Context:
    judged, use = judged_by([instance])[instance.pk], _use_of(instance)
    return {
        "instance": instance,
        "use": use,
        "policy": judged.policy,
        "says": sentence(judged.policy) if judged.policy else "",
        "mode": UseMode(judged.mode).label,
        "is_over": bool(use and use.lease_until and use.lease_until <= timezone.now()),
        "may_change": request.membership.can(Role.OPERATOR),
    }


@require_http_methods(["GET", "HEAD", "POST"])
@requires(Role.OPERATOR)
def machine_use(request: TeamRequest, pk: int) -> HttpResponse:
    instance = get_object_or_404(Instance.objects.select_related("account", "team"), pk=pk, team=request.team)
    policy = judged_by([instance])[instance.pk].policy
    policy_mode = policy.mode if policy else UseMode.INTERACTIVE
    form = UseForm(request.POST if request.method == "POST" else None, use=_use_of(instance), policy_mode=policy_mode)
    if request.method == "POST" and form.is_valid() and _saved(request, form, instance):
        return redirect("instance", request.team.slug, pk)
    context = {"nav": "instances", "form": form, "instance": instance, "says": sentence(policy) if policy else ""}
    return render(request, "idle/policies/use.html", context, status=422 if form.errors else 200)


def _saved(request: TeamRequest, form: UseForm, instance: Instance) -> bool:
    try:
        set_machine_use(actor=Actor.of_page(request), instance=instance, now=timezone.now(), **form.cleaned_data)
    except ValidationError as refusal:
        form.add_error(None, refusal)
        return False
    messages.success(request, _("Saved. It counts from the next minute on."))
    return True


def _use_of(instance: Instance) -> MachineUse | None:
    return MachineUse.objects.filter(instance=instance).select_related("changed_by").first()
