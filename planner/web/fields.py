"""Kinds of fields of the planner's input: each refuses what is not of its kind, and says what would do."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

Words = Any
Said = dict[str, Any]
_SAID_BY_RANGE = ("min_value", "max_value", "invalid", "max_string_length", "max_digits", "max_whole_digits", "null")


class Whole(serializers.IntegerField):
    """A whole number; 2.5, true and "two" are refused."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or (isinstance(data, float) and not data.is_integer()):
            self.fail("invalid")
        return super().to_internal_value(data)


class Real(serializers.FloatField):
    """A finite number."""

    def to_internal_value(self, data: Any) -> float:
        number = super().to_internal_value(data)
        if isinstance(data, bool) or not math.isfinite(number):
            self.fail("invalid")
        return number


class Amount(serializers.DecimalField):
    """Money, or a share whose digits matter."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_digits=14, decimal_places=6, **kwargs)

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        """An empty text is no null here, as with the other numbers."""
        if data == "":
            self.fail("invalid")
        return super().validate_empty_values(data)

    def to_internal_value(self, data: Any) -> Decimal:
        if isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


def _of(kind: Any, limits: tuple[Any, Any], label: Words, default: Any, more: Any) -> Any:
    """`default` None: nothing is asked for unless somebody says it."""
    low, high = limits
    refusal = format_lazy(_("Give a number from {low} to {high}."), low=f"{low:,}", high=f"{high:,}")
    if kind is Whole:
        refusal = format_lazy(_("Give a whole number from {low} to {high}."), low=f"{low:,}", high=f"{high:,}")
    return kind(
        label=label,
        default=default,
        allow_null=default is None,
        min_value=low,
        max_value=high,
        error_messages=dict.fromkeys(_SAID_BY_RANGE, refusal),
        **more,
    )


def whole(label: Words, low: int, high: int, default: int | None = None, **more: Any) -> Any:
    return _of(Whole, (low, high), label, default, more)


def real(label: Words, low: float, high: float, default: float | None = None, **more: Any) -> Any:
    return _of(Real, (low, high), label, default, more)


def amount(label: Words, low: str, high: str, default: str | None = None, **more: Any) -> Any:
    first = None if default is None else Decimal(default)
    return _of(Amount, (Decimal(low), Decimal(high)), label, first, more)


def choice(label: Words, options: Iterable[tuple[str, Words]], default: str, **more: Any) -> Any:
    pairs = list(options)
    known = ", ".join(value for value, _label in pairs if value)
    refusal = format_lazy(_("Give one of {known}."), known=known[:300])
    return serializers.ChoiceField(
        pairs,
        label=label,
        default=default,
        allow_blank=not default,
        error_messages=dict.fromkeys(("invalid_choice", "null"), refusal),
        **more,
    )


def choices(label: Words, options: Iterable[tuple[str, Words]], default: tuple[str, ...], **more: Any) -> Any:
    pairs = list(options)
    known = ", ".join(value for value, _label in pairs)
    words: Said = {
        "invalid_choice": format_lazy(_("“{{input}}” is not known here: give some of {known}."), known=known[:300]),
        "not_a_list": format_lazy(_("Give a list with some of {known}."), known=known[:300]),
    }
    return serializers.MultipleChoiceField(
        choices=pairs, label=label, default=set(default), error_messages=words, **more
    )


def flag(label: Words, default: bool = False, **more: Any) -> Any:
    refusal = _("Give true or false.")
    words: Said = dict.fromkeys(("invalid", "null"), refusal)
    return serializers.BooleanField(label=label, default=default, error_messages=words, **more)


def line(label: Words, most: int, **more: Any) -> Any:
    words: Said = {"max_length": format_lazy(_("Give {most} characters at most."), most=most)}
    return serializers.CharField(
        label=label, default="", allow_blank=True, max_length=most, error_messages=words, **more
    )
