"""Which attempt of a job an address asks for."""

from __future__ import annotations

from django.http import QueryDict

from jobs.book.models import Attempt, Job

DIGITS = 12


def attempt_of(found: Job, asked: str) -> Attempt:
    """The one that is asked for, else the newest. A job has one from the first moment on."""
    rows = found.attempts.order_by("-number")
    known = rows.filter(number=int(asked)).first() if is_number(asked) and len(asked) < 6 else None
    return known or rows[0]


def number_in(query: QueryDict, name: str) -> int | None:
    """None where it is absent or no number."""
    return int(word) if is_number(word := query.get(name, "")) else None


def is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= DIGITS
