"""Pages by key, not by number: rows that come or go between two pages shift nothing."""

from __future__ import annotations

from typing import Any

from django.core import signing
from django.db.models import F, Model, Q, QuerySet
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

DEFAULT_LIMIT = 100
MAX_LIMIT = 500


class KeysetPagination(BasePagination):
    """Rows after (value of the ordering field, id) of the last row seen.

    DRF's CursorPagination counts rows with equal positions by offset, up to 1,000 of them; one listing of a large
    account writes more observations than that with one time.
    A view names its orderings in `orderings`; fields that may be null sort last. The id breaks ties.
    """

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        assert isinstance(queryset, QuerySet)
        self.request = request
        self.ordering = self._ordering(view)
        self.limit = self._limit()
        # A cursor belongs to one list in one order: its signature says so.
        self.salt = f"cursor:{queryset.model._meta.label}:{self.ordering}"
        rows = list(self._after_cursor(queryset).order_by(*self._order_by(queryset))[: self.limit + 1])
        self.has_more = len(rows) > self.limit
        self.page: list[Model] = rows[: self.limit]
        return self.page

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"next": self._next_link(), "results": data})

    @property
    def _field_name(self) -> str:
        return self.ordering.removeprefix("-")

    @property
    def _descends(self) -> bool:
        return self.ordering.startswith("-")

    def _ordering(self, view: Any) -> str:
        wanted: str = self.request.query_params.get("ordering", view.orderings[0])
        if wanted not in _choices(view):
            words = ", ".join(_choices(view))
            raise ValidationError(
                {"ordering": _("Not an ordering of this list. Give one of: %(words)s.") % {"words": words}}
            )
        return wanted

    def _limit(self) -> int:
        word = self.request.query_params.get("limit", str(DEFAULT_LIMIT))
        if not (word.isascii() and word.isdigit() and len(word) < 10 and 1 <= int(word) <= MAX_LIMIT):
            raise ValidationError({"limit": _("Give a whole number from 1 to %(most)s.") % {"most": MAX_LIMIT}})
        return int(word)

    def _order_by(self, queryset: QuerySet[Any]) -> list[Any]:
        field, tie = F(self._field_name), F("id")
        last = True if queryset.model._meta.get_field(self._field_name).null else None
        if self._descends:
            return [field.desc(nulls_last=last), tie.desc()]
        return [field.asc(nulls_last=last), tie.asc()]

    def _after_cursor(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        cursor = self.request.query_params.get("cursor")
        if cursor is None:
            return queryset
        try:
            text, row_id = signing.loads(cursor, salt=self.salt)
        except signing.BadSignature:
            raise ValidationError(
                {"cursor": _("Not a cursor of this list in this order: follow `next`, or leave it out to start again.")}
            ) from None
        field = queryset.model._meta.get_field(self._field_name)
        return queryset.filter(self._beyond(None if text is None else field.to_python(text), row_id))

    def _beyond(self, value: Any, row_id: int) -> Q:
        name, compare = self._field_name, "lt" if self._descends else "gt"
        later_tie = Q(**{f"id__{compare}": row_id})
        if value is None:
            return Q(**{f"{name}__isnull": True}) & later_tie
        further = Q(**{f"{name}__{compare}": value}) | (Q(**{name: value}) & later_tie)
        return further | Q(**{f"{name}__isnull": True})

    def _next_link(self) -> str | None:
        if not self.has_more:
            return None
        last = self.page[-1]
        field = last._meta.get_field(self._field_name)
        text = None if getattr(last, self._field_name) is None else field.value_to_string(last)  # type: ignore[union-attr]
        cursor = signing.dumps([text, last.pk], salt=self.salt)
        return replace_query_param(self.request.build_absolute_uri(), "cursor", cursor)

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        link = {
            "type": ["string", "null"],
            "format": "uri",
            "example": "https://rackrent.example/api/v1/instances/?cursor=WzEwMF0%3A1vXk",
            "description": "Address of the next page; null on the last one.",
        }
        return {"type": "object", "required": ["next", "results"], "properties": {"next": link, "results": schema}}

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        limit = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
        order = {"type": "string", "enum": _choices(view), "default": view.orderings[0]}
        return [
            _parameter("cursor", {"type": "string"}, "Where the page starts: taken from `next`, never made up."),
            _parameter("limit", limit, "Rows on a page."),
            _parameter(
                "ordering", order, "A minus sign turns the order round. Ties are broken by id; null comes last."
            ),
        ]


def _choices(view: Any) -> list[str]:
    """Every ordering of a view both ways, its default first."""
    both = [word for name in view.orderings for word in (name, name[1:] if name.startswith("-") else f"-{name}")]
    return list(dict.fromkeys(both))


def _parameter(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}
