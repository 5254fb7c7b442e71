"""Reads values out of a provider's JSON. What is not as the API promises is Unavailable: nobody guesses about machines and money."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from fleet.providers.errors import Unavailable
from fleet.providers.values import Money

Row = dict[str, Any]
# What providers reckon a month with, where they price disks by it.
HOURS_PER_MONTH = Decimal(730)


@contextmanager
def promised(label: str) -> Iterator[None]:
    """Whatever goes wrong with the form of an answer inside becomes Unavailable."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise Unavailable(f"{label}'s answer is not in the form of its API ({type(error).__name__}).") from error


def rows_of(answer: Any, name: str, label: str) -> list[Row]:
    """The list of objects called `name`. Raises Unavailable where there is none: an absent list is not an empty one."""
    found = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise Unavailable(f"{label}'s answer has no list of {name}.")
    return found


def number(value: Any) -> Decimal | None:
    """Exactly the digits that were written; None for nothing. Raises ArithmeticError or TypeError for what is no finite number."""
    if value is None:
        return None
    if isinstance(value, bool):
        raise TypeError(value)
    read = Decimal(str(value))
    if not read.is_finite():
        raise ArithmeticError(value)
    return read


def price(value: Any, currency: str, *, times: int = 1) -> Money | None:
    """`value` × `times`; None where the provider tells nothing above zero: a machine that runs is not free."""
    read = number(value)
    return Money(read * times, currency) if read is not None and read > 0 else None


def moment(word: str | None) -> datetime | None:
    """Raises ValueError for a time without a zone: guessing one would move bills."""
    if not word:
        return None
    read = datetime.fromisoformat(word)
    if read.tzinfo is None:
        raise ValueError(word)
    return read


def epoch(value: Any) -> datetime | None:
    """From seconds since 1970; None for nothing and for 0, which APIs write for "never"."""
    return datetime.fromtimestamp(float(value), UTC) if value else None
