"""Offers: found, ranked and compared. No view asks a provider: what is shown was read before, and says when."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from fleet.inventory.offers.compare import compared
from fleet.inventory.offers.filters import offers_of
from fleet.inventory.offers.models import OfferSource, SourceKind
from fleet.inventory.offers.search import Results, Search
from fleet.inventory.offers.search_form import GROUPS, UNKNOWN_PASSES, SearchForm
from fleet.inventory.offers.shown import lines_of
from fleet.inventory.plans.gate import blocks_for_page, remedy_words
from fleet.panels import Context
from fleet.teams.access import TeamRequest
from fleet.teams.models import Role

PER_PAGE = 50
MEANT = {"unknown": UNKNOWN_PASSES, "sort": "score"}
# Fields that take a whole line of the form.
WIDE = {"gpu", "image", "purpose", "unknown", "sort"}
FEWEST_COMPARED, MOST_COMPARED = 2, 4


@require_safe
def offers(request: TeamRequest) -> HttpResponse:
    """The address is the search, and always the shortest one that says it."""
    shortest = without_empty(request.GET)
    if shortest != request.GET:
        return HttpResponseRedirect(f"?{shortest.urlencode()}" if shortest else request.path)
    form = SearchForm(request.GET)
    context = {
        "nav": "offers",
        "form": form,
        "groups": groups_of(form),
        "may_change": may_change(request),
        "blocks": blocks_for_page(request.team.pk),
        "remedy": remedy_words(),
    }
    if not form.is_valid():
        return render(request, "inventory/offers.html", context, status=422)
    search = Search.of(form, [request.team.pk])
    results = search.run()
    return render(request, "inventory/offers.html", {**context, **found(request, search, results)})


@require_safe
def offers_compare(request: TeamRequest) -> HttpResponse:
    """Two to four offers side by side, scored as in the search that they were chosen in."""
    form = SearchForm(request.GET)
    ids = [int(word) for word in request.GET.getlist("id") if word.isascii() and word.isdigit() and len(word) < 19]
    context: Context = {"nav": "offers", "back": query_of(request, "id")}
    if form.is_valid() and FEWEST_COMPARED <= len(set(ids)) <= MOST_COMPARED:
        search = Search.of(form, [request.team.pk])
        mine = offers_of([request.team.pk]).filter(pk__in=ids).values_list("pk", flat=True)
        lines = lines_of(search.ranked(list(mine), search.run()))
        lines.sort(key=lambda line: (-line.score, line.offer.pk))
        context |= {"lines": lines, "rows": compared(lines)}
    if len(context.get("lines", ())) < FEWEST_COMPARED:
        status = 422 if request.GET.getlist("id") else 200
        return render(request, "inventory/offers_compare.html", {**context, "lines": []}, status=status)
    return render(request, "inventory/offers_compare.html", context)


def found(request: TeamRequest, search: Search, results: Results) -> Context:
    page = Paginator(results.found, PER_PAGE).get_page(request.GET.get("page"))
    offered = offers_of([request.team.pk])
    return {
        "page": page,
        "lines": lines_of(search.ranked([one.id for one in page.object_list], results)),
        "models": results.models,
        "providers": sorted(set(offered.values_list("provider", flat=True).distinct())),
        "currencies": sorted(results.cheapest),
        "failing": list(
            OfferSource.objects.filter(
                team=request.team, kind=SourceKind.LIVE, failures__gt=0, account__disconnected_at=None
            )
        ),
        "query": query_of(request, "page"),
        "asked": [(name, value) for name, value in request.GET.items() if name != "page"],
    }


def groups_of(form: SearchForm) -> list[dict[str, Any]]:
    """Groups with a title are folded, unless one of their fields is filled or wrong."""
    return [
        {
            "title": title,
            "fields": [(form[name], name in WIDE) for name in names],
            "is_open": any(form.data.get(name) or name in form.errors for name in names),
        }
        for title, names in GROUPS
    ]


def without_empty(given: QueryDict) -> QueryDict:
    """Without what says nothing: empty words, and those that are meant anyway."""
    kept = given.copy()
    for name in given:
        values = [value for value in given.getlist(name) if value.strip() and value != MEANT.get(name)]
        kept.setlist(name, values) if values else kept.pop(name)
    return kept


def query_of(request: TeamRequest, *dropped: str) -> str:
    """The search without some of its words, to be put before others."""
    kept = request.GET.copy()
    for name in dropped:
        kept.pop(name, None)
    return kept.urlencode()


def may_change(request: TeamRequest) -> bool:
    return request.membership.can(Role.OPERATOR)
