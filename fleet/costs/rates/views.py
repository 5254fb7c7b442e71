"""Exchange rates: what totals are converted with."""

from __future__ import annotations

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from fleet.costs.rates.forms import RateForm, RatesForm
from fleet.costs.rates.rates import (
    currencies_without_rate,
    import_rates,
    latest_day,
    newest_days,
    remove_rate,
    set_rate,
)
from fleet.costs.rates.sheet import RateSheet
from fleet.costs.spend.models import ExchangeRate
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role

PAGE_SIZE = 100
# Faults: more nobody reads at once.
SHOWN = 20


@require_safe
def rates(request: TeamRequest) -> HttpResponse:
    return draw(request)


@require_POST
@requires(Role.ADMIN)
def rate_set(request: TeamRequest) -> HttpResponse:
    now = timezone.now()
    form = RateForm(request.POST, latest=latest_day(request.team, now))
    if not form.is_valid():
        return draw(request, typed=form)
    row = set_rate(actor=Actor.of_page(request), team=request.team, rate=form.parsed(), now=now)
    messages.success(request, _("Kept: %(rate)s. Totals follow at once.") % {"rate": str(row)})
    return redirect("costs_rates", request.team.slug)


@require_POST
@requires(Role.ADMIN)
def rates_import(request: TeamRequest) -> HttpResponse:
    """All of a file, or none of it."""
    now = timezone.now()
    form = RatesForm(request.POST, request.FILES)
    if not form.is_valid():
        return draw(request, asked=form)
    sheet = form.sheet(latest=latest_day(request.team, now))
    if sheet.faults:
        return draw(request, asked=RatesForm({"csv": form.cleaned_data["csv"]}), sheet=sheet)
    count = import_rates(actor=Actor.of_page(request), team=request.team, rates=sheet.rates, now=now)
    text = ngettext("Imported %(count)d rate.", "Imported %(count)d rates.", count)
    messages.success(request, text % {"count": count})
    return redirect("costs_rates", request.team.slug)


@require_POST
@requires(Role.ADMIN)
def rate_remove(request: TeamRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(ExchangeRate.objects.select_related("team"), team=request.team, pk=pk)
    said = str(row)
    remove_rate(actor=Actor.of_page(request), rate=row)
    messages.success(request, _("Removed: %(rate)s.") % {"rate": said})
    return redirect("costs_rates", request.team.slug)


def draw(
    request: TeamRequest,
    *,
    typed: RateForm | None = None,
    asked: RatesForm | None = None,
    sheet: RateSheet | None = None,
) -> HttpResponse:
    team = request.team
    latest = latest_day(team, timezone.now())
    found = ExchangeRate.objects.filter(team=team).select_related("created_by").order_by("-day", "currency", "into")
    page = Paginator(found, PAGE_SIZE).get_page(request.GET.get("page"))
    newest = newest_days(team)
    context = {
        "nav": "costs",
        "tab": "rates",
        "typed": typed or RateForm(initial={"into": team.currency, "day": timezone.localdate()}, latest=latest),
        "asked": asked or RatesForm(),
        "sheet": sheet,
        "faults": sheet.faults[:SHOWN] if sheet else [],
        "page": page,
        "rows": [(row, newest.get((row.currency, row.into)) == row.day) for row in page],
        "missing": currencies_without_rate(team),
        "may_change": request.membership.can(Role.ADMIN),
    }
    wrong = bool(typed or asked or sheet)
    return render(request, "costs/rates.html", context, status=422 if wrong else 200)
