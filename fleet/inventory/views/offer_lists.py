"""Where offers come from: lists that are read, lists that the team brings, and how it rates support."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from fleet import panels
from fleet.inventory.failures import in_readers_language
from fleet.inventory.offers.filters import offers_of
from fleet.inventory.offers.forms import ListForm, RatingForm
from fleet.inventory.offers.lists import import_list, remove_list
from fleet.inventory.offers.models import OfferSource, ProviderScore, ScoreKind, SourceKind
from fleet.inventory.offers.places import provider_label
from fleet.inventory.offers.ratings import drop_rating, rate_support
from fleet.inventory.offers.sheet import Sheet
from fleet.inventory.words import MARKETS
from fleet.teams.access import TeamRequest, requires
from fleet.teams.audit import Actor
from fleet.teams.models import Role

# Faults and rows of a preview: more nobody reads.
SHOWN = 20


@require_http_methods(["GET", "HEAD", "POST"])
def offer_lists(request: TeamRequest) -> HttpResponse:
    """A list is shown before it is imported, and imported whole or not at all."""
    form = ListForm(request.POST or None, request.FILES or None, initial={"priced_on": timezone.localdate()})
    if request.method != "POST" or not form.is_valid():
        return draw(request, form)
    sheet = form.sheet()
    if sheet.faults or request.POST.get("step") != "import":
        return draw(request, filled(form), sheet=sheet)
    source = import_list(
        actor=Actor.of_page(request),
        team=request.team,
        name=form.cleaned_data["name"],
        rows=sheet.rows,
        now=timezone.now(),
    )
    count = len(sheet.rows)
    text = ngettext("Imported %(count)d offer as “%(name)s”.", "Imported %(count)d offers as “%(name)s”.", count)
    messages.success(request, text % {"count": count, "name": source.name})
    return redirect("offer_lists", request.team.slug)


@require_POST
@requires(Role.OPERATOR)
def offer_list_remove(request: TeamRequest, pk: int) -> HttpResponse:
    mine = OfferSource.objects.filter(team=request.team, kind=SourceKind.IMPORT)
    source = get_object_or_404(mine.select_related("team"), pk=pk)
    remove_list(actor=Actor.of_page(request), source=source)
    messages.success(request, _("Removed “%(name)s” and its offers.") % {"name": source.name})
    return redirect("offer_lists", request.team.slug)


@require_POST
@requires(Role.OPERATOR)
def provider_rate(request: TeamRequest) -> HttpResponse:
    form = RatingForm(request.POST)
    if not form.is_valid():
        return draw(request, ListForm(initial={"priced_on": timezone.localdate()}), rating=form)
    given = form.cleaned_data
    rate_support(actor=Actor.of_page(request), team=request.team, now=timezone.now(), **given)
    messages.success(request, _("Rated; the order of offers follows."))
    return redirect("offer_lists", request.team.slug)


@require_POST
@requires(Role.OPERATOR)
def provider_rating_drop(request: TeamRequest, pk: int) -> HttpResponse:
    mine = ProviderScore.objects.filter(team=request.team, kind=ScoreKind.SUPPORT)
    drop_rating(actor=Actor.of_page(request), score=get_object_or_404(mine.select_related("team"), pk=pk))
    messages.success(request, _("The rating is gone; support has no weight there."))
    return redirect("offer_lists", request.team.slug)


def filled(form: ListForm) -> ListForm:
    """The same form with the file's text in it: a browser sends no file twice."""
    return ListForm({**form.data.dict(), "csv": form.cleaned_data["csv"]})  # type: ignore[attr-defined]  # a QueryDict


def draw(
    request: TeamRequest, form: ListForm, *, sheet: Sheet | None = None, rating: RatingForm | None = None
) -> HttpResponse:
    wrong = bool(form.errors or (sheet and sheet.faults) or (rating and rating.errors))
    context = {
        "nav": "offers",
        "form": form,
        "rating": rating or RatingForm(),
        "sheet": sheet,
        "faults": sheet.faults[:SHOWN] if sheet else [],
        "sample": [{**row, "market_word": MARKETS[row["market"]]} for row in sheet.rows[:SHOWN]] if sheet else [],
        "sources": sources_of(request),
        "scores": scores_of(request),
        "panels": panels.offer_panels,
        "providers": sorted(set(offers_of([request.team.pk]).values_list("provider", flat=True).distinct())),
        "may_change": request.membership.can(Role.OPERATOR),
    }
    return render(request, "inventory/offer_lists.html", context, status=422 if wrong else 200)


def sources_of(request: TeamRequest) -> list[dict[str, Any]]:
    lists = OfferSource.objects.filter(team=request.team).exclude(account__disconnected_at__isnull=False)
    rows = lists.annotate(count=Count("offers")).order_by("kind", "name")
    return [{"source": source, "error": in_readers_language(source.error_detail)} for source in rows]


def scores_of(request: TeamRequest) -> list[dict[str, Any]]:
    scores = ProviderScore.objects.filter(team=request.team, kind=ScoreKind.SUPPORT).select_related("by")
    return [{"score": score, "label": provider_label(score.provider)} for score in scores.order_by("provider")]
