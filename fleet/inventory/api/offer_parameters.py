"""The search for offers as query parameters: every field of the search's form, under its own name."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, cast

from django import forms
from django.utils import translation
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from fleet.inventory.offers.search import Search
from fleet.inventory.offers.search_form import SORTS, SearchForm
from fleet.rest.parameters import word_of

# The form's own word for the order is a parameter that all lists share.
NAMES = tuple(name for name in SearchForm.base_fields if name != "sort")
ORDERINGS = tuple(SORTS)


def search_of(request: Request, team_ids: Collection[int]) -> Search:
    """Raises ValidationError by name."""
    ordering = word_of(request, "ordering", ORDERINGS, default=ORDERINGS[0])
    form = SearchForm({name: request.query_params[name] for name in NAMES if name in request.query_params})
    if not form.is_valid():
        raise ValidationError({name: str(texts[0]) for name, texts in form.errors.items()})
    return Search.of(form, team_ids, sort=ordering)


def parameters() -> list[OpenApiParameter]:
    """In English, as the whole schema is."""
    with translation.override("en"):
        return [_parameter(name, SearchForm.base_fields[name]) for name in NAMES]


def _parameter(name: str, field: forms.Field) -> OpenApiParameter:
    words = f"{field.label}: {field.help_text}" if field.help_text else str(field.label)
    return OpenApiParameter(name, _shape(field), description=f"{words}.")


def _shape(field: forms.Field) -> dict[str, Any]:
    if isinstance(field, forms.ChoiceField):
        words = cast(Iterable[tuple[str, object]], field.choices)
        return {"type": "string", "enum": [word for word, _label in words if word]}
    if isinstance(field, forms.DecimalField):
        return {"type": "number", "exclusiveMinimum": 0}
    if isinstance(field, forms.IntegerField):
        return {"type": "integer", "minimum": field.min_value, "maximum": field.max_value}
    assert isinstance(field, forms.CharField)
    return {"type": "string", "maxLength": field.max_length}
