"""Filters that refuse what they do not know: a mistyped filter would otherwise answer with everything."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django_filters import rest_framework as django_filters
from django_filters.fields import IsoDateTimeField
from drf_spectacular.utils import extend_schema_field
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

BIGGEST_ID = 2**63 - 1


class MomentField(IsoDateTimeField):
    default_error_messages = {
        "invalid": gettext_lazy("Give a time as 2026-11-30T08:00:00Z; in an address, write + as %%2B.")
    }

    def to_python(self, value: Any) -> datetime | None:
        """In UTC: PostgreSQL knows no offset beyond 16 hours."""
        moment: datetime | None = super().to_python(value)
        try:
            return moment.astimezone(UTC) if moment else moment
        except OverflowError:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from None


class MomentFilter(django_filters.IsoDateTimeFilter):
    field_class = MomentField


class WholeFilter(django_filters.NumberFilter):
    """A whole number that its column can hold."""

    field_class = forms.IntegerField

    def __init__(self, *args: Any, low: int = -(2**31), high: int = 2**31 - 1, **kwargs: Any) -> None:
        super().__init__(*args, min_value=low, max_value=high, **kwargs)

    def get_max_validator(self) -> None:
        """django-filter's own guard is for decimals; the field has its bounds already."""


class FlagFilter(django_filters.TypedChoiceFilter):
    """true or false. django-filter's BooleanFilter reads anything else as "not asked"."""

    def __init__(self, *args: Any, help_text: str, **kwargs: Any) -> None:
        words = [("true", "true"), ("false", "false")]
        super().__init__(*args, choices=words, coerce=lambda word: word == "true", help_text=help_text, **kwargs)
        extend_schema_field({"type": "boolean", "description": help_text})(self)


class IdFilter(WholeFilter):
    """The id of a row. One that does not exist leaves nothing, as one of another team does."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, low=1, high=BIGGEST_ID, **kwargs)


class WordsFilter(django_filters.BaseInFilter, django_filters.ChoiceFilter):
    """One or several words out of a fixed set, separated by commas."""


class IdsFilter(django_filters.BaseInFilter, IdFilter):
    """One or several ids, separated by commas."""


def refuse_unknown(request: Request, known: Collection[str]) -> None:
    """Each parameter must be known, not empty, and given once; several values of one are separated by commas."""
    for name, values in request.query_params.lists():
        if name not in known:
            raise ValidationError({name: _unknown(name, known)})
        if len(values) > 1:
            raise ValidationError({name: _("Given %(count)s times; give it once.") % {"count": len(values)}})
        if not values[0].strip():
            # An unset variable in a script must not widen a list to everything.
            raise ValidationError({name: _("Empty: give a value, or leave it out.")})


def _unknown(name: str, known: Collection[str]) -> str:
    if close := difflib.get_close_matches(name, known, n=1):
        return _("There is no such parameter here. Did you mean `%(name)s`?") % {"name": close[0]}
    if not known:
        return _("This address takes no parameters.")
    return _("There is no such parameter here. It takes: %(names)s.") % {"names": ", ".join(sorted(known))}


def words(enum: type[StrEnum]) -> list[tuple[str, str]]:
    return [(member.value, member.value) for member in enum]
