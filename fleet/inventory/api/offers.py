"""Offers over the API: the search of the page, under the same names, in the same order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core import signing
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from fleet.inventory.api.offer_parameters import NAMES, ORDERINGS, parameters, search_of
from fleet.inventory.api.offer_rows import OfferSerializer
from fleet.inventory.offers.models import Offer
from fleet.inventory.offers.search import Found, Ranked, Search
from fleet.inventory.offers.search_form import SearchForm
from fleet.rest.pagination import DEFAULT_LIMIT, MAX_LIMIT, KeysetPagination
from fleet.rest.parameters import number_of
from fleet.teams.scoping import TeamRows

PAGING = ("limit", "cursor")


class RankPages(KeysetPagination):
    """Pages by place in the order of a search, for orders that no column has."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """`queryset`: everything that was found, in order."""
        self.request = request
        self.limit = number_of(request, "limit", low=1, high=MAX_LIMIT, default=DEFAULT_LIMIT)
        # A cursor belongs to one search: its signature says so.
        asked = sorted((name, word) for name, word in request.query_params.items() if name not in PAGING)
        self.salt = f"cursor:offers:{asked}"
        found = self._after(queryset)
        self.has_more = len(found) > self.limit
        self.found = list(found[: self.limit])
        return self.found

    def _after(self, found: Sequence[Found]) -> Sequence[Found]:
        cursor = self.request.query_params.get("cursor")
        if cursor is None:
            return found
        try:
            last = tuple(signing.loads(cursor, salt=self.salt))
        except signing.BadSignature:
            raise ValidationError(
                {"cursor": _("Not a cursor of this list in this order: follow `next`, or leave it out to start again.")}
            ) from None
        return [one for one in found if one.place > last]

    def _next_link(self) -> str | None:
        if not self.has_more:
            return None
        cursor = signing.dumps(self.found[-1].place, salt=self.salt)
        return replace_query_param(self.request.build_absolute_uri(), "cursor", cursor)

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        shared = super().get_schema_operation_parameters(view)
        order = next(one for one in shared if one["name"] == "ordering")
        order["schema"] = {"type": "string", "enum": list(ORDERINGS), "default": ORDERINGS[0]}
        order["description"] = "The best, the cheapest, the largest or the newest first; what is not told comes last."
        return shared


class OfferViewSet(TeamRows[Offer]):
    """What can be rented: live offers, the price table, imported lists. Filtered, scored by fit, with what people overlook."""

    queryset = Offer.objects.select_related("source__team", "source__account").defer("source__account__credentials")
    serializer_class = OfferSerializer
    pagination_class = RankPages
    team_path = "source__team"
    orderings = ORDERINGS
    known_parameters = NAMES

    def get_known_parameters(self) -> set[str]:
        return set() if self.detail else set(super().get_known_parameters())

    @extend_schema(parameters=parameters())
    def list(self, request: Request) -> Response:
        """Finds offers. Names and order are those of the page: its address and this one differ in their path only."""
        search = search_of(request, self.visible_team_ids())
        results = search.run()
        page = self.paginate_queryset(results.found)
        assert page is not None
        ranked = search.ranked([one.id for one in page], results)
        return self.get_paginated_response(self.told(ranked))

    def retrieve(self, request: Request, pk: str) -> Response:
        """One offer, scored as one among all where nothing is asked for."""
        offer = self.get_object()
        form = SearchForm({})
        form.full_clean()
        search = Search.of(form, [offer.source.team_id])
        return Response(self.told(search.ranked([offer.pk], search.run()))[0])

    def told(self, ranked: Sequence[Ranked]) -> Any:
        context = {**self.get_serializer_context(), "ranked": {one.offer.pk: one for one in ranked}}
        return self.serializer_class([one.offer for one in ranked], many=True, context=context).data
