"""Whose a machine is, on its own page."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from fleet.costs.attribution.forms import SplitForm
from fleet.costs.attribution.models import MachineSplit
from fleet.costs.attribution.sharing import set_split
from fleet.costs.attribution.shown import spans_shown
from fleet.inventory.models import Instance
from fleet.panels import Context
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role


@require_POST
@requires(Role.OPERATOR)
def machine_split(request: TeamRequest, pk: int) -> HttpResponse:
    instance = get_object_or_404(Instance.objects.select_related("team"), pk=pk, team=request.team)
    form = SplitForm(request.POST)
    if not form.is_valid():
        messages.error(request, _("There is no such way to split a machine. It stays as it was."))
    elif set_split(
        actor=Actor.of_page(request), instance=instance, split=form.cleaned_data["split"], now=timezone.now()
    ):
        messages.success(request, _("It is split so from this hour on."))
    return redirect("instance", request.team.slug, pk)


def whose_panel(request: TeamRequest, instance: Instance) -> Context:
    chosen = MachineSplit.objects.filter(instance=instance).values_list("split", flat=True).first()
    return {
        "instance": instance,
        "spans": spans_shown(instance),
        "form": SplitForm(initial={"split": chosen or ""}, auto_id="split-%s"),
        "may_change": request.membership.can(Role.OPERATOR),
        "may_rewrite": request.membership.can(Role.ADMIN),
    }
