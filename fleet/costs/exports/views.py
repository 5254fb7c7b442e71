"""A month of money as a download."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from fleet.costs.exports.export import ExportError, Wish, open_export
from fleet.costs.exports.sending import file_answer
from fleet.teams.access import TeamRequest


@require_safe
def costs_export(request: TeamRequest) -> HttpResponseBase:
    """`?month=YYYY-MM&format=csv|parquet|focus|focus-parquet&version=1.2&bom=1`, each of which may be missing."""
    try:
        wish = Wish.of(request.GET.dict(), team=request.team, now=timezone.now())
    except ExportError as error:
        messages.error(request, f"{error.field}: {error}")
        return redirect("costs", request.team.slug)
    return file_answer(request, open_export(request.team, wish))
