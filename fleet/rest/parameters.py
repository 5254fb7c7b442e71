"""Query parameters of views that are no list: read one by one, refused by name."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.core.exceptions import ValidationError as FieldError
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from fleet.rest.filters import BIGGEST_ID, MomentField


def moment_of(request: Request, name: str) -> datetime | None:
    word = request.query_params.get(name)
    try:
        moment: datetime | None = MomentField(required=False).clean(word)
    except FieldError as error:
        raise ValidationError({name: error.messages[0] % ()}) from None
    return moment


def number_of(request: Request, name: str, *, low: int, high: int, default: int) -> int:
    word = request.query_params.get(name)
    if word is None:
        return default
    number = _whole(word)
    if number is None or not low <= number <= high:
        text = _("Give a whole number from %(low)s to %(high)s.")
        raise ValidationError({name: text % {"low": low, "high": high}})
    return number


def ids_of(request: Request, name: str, *, most: int) -> list[int]:
    """Different ids, separated by commas; none where the parameter is absent."""
    if name not in request.query_params:
        return []
    numbers = {_whole(word) for word in request.query_params[name].split(",")}
    ids = sorted(number for number in numbers if number is not None and 1 <= number <= BIGGEST_ID)
    if len(ids) != len(numbers):
        raise ValidationError({name: _("Give ids, separated by commas: 17 or 17,18.")})
    if len(ids) > most:
        raise ValidationError({name: _("Give %(most)s ids at most.") % {"most": most}})
    return ids


def words_of(request: Request, name: str, known: Collection[str]) -> list[str]:
    """Different words out of a known set, in the order given; none where the parameter is absent."""
    if name not in request.query_params:
        return []
    words = list(dict.fromkeys(word.strip() for word in request.query_params[name].split(",")))
    if unknown := [word for word in words if word not in known]:
        text = _("Not known: %(unknown)s. Give some of %(known)s.")
        raise ValidationError({name: text % {"unknown": ", ".join(unknown)[:200], "known": ", ".join(known)}})
    return words


def word_of(request: Request, name: str, known: Collection[str], *, default: str) -> str:
    """One word out of a known set."""
    word = request.query_params.get(name, default)
    if word not in known:
        raise ValidationError({name: _("Give one of %(known)s.") % {"known": ", ".join(known)}})
    return word


def _whole(word: str) -> int | None:
    return int(word) if word.isascii() and word.isdigit() and len(word) < 20 else None
