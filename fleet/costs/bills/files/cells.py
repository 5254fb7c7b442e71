"""Cells of a bill's file, read strictly: what cannot be used is told with its column and the remedy. Files are hostile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from fleet.teams.fields import one_line

Cells = Mapping[str, str]
HIGHEST = Decimal(10) ** 9
# What the rows keep of an amount: far below anything that is paid.
STEP = Decimal("1e-12")
SHOWN_CHARS = 40
SIGNS = "$¥€£"
# "2020-07-01 00:00:00 +0000", as some write it.
ZONE_APART = re.compile(r"^(\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?) ?(?:UTC|Z|([+-]\d{2}):?(\d{2}))$")
FIRST, LAST = datetime(2010, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
LONGEST = timedelta(days=400)
ONE_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Fault:
    """`line` 0: the file as a whole. `text` says what is wrong and what to write instead."""

    line: int
    column: str
    text: str


class CellError(Exception):
    def __init__(self, column: str, text: str) -> None:
        super().__init__(text)
        self.column, self.text = column, text


def shown(word: str) -> str:
    return one_line(word)[:SHOWN_CHARS]


def line_of_text(word: str, length: int) -> str:
    return one_line(word)[:length]


def amount_of(word: str, column: str) -> Decimal:
    if not word:
        raise CellError(column, _("It is empty. Give an amount, or take the line out."))
    value = number_of(word.translate({ord(sign): None for sign in SIGNS}), column)
    return value.quantize(STEP, ROUND_HALF_EVEN)


def number_of(word: str, column: str) -> Decimal:
    """Also in E-notation. Raises CellError for thousands separators, for what is no number, and for what no bill holds."""
    try:
        value = Decimal(word.strip())
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite() or abs(value) > HIGHEST:
        text = _("“%(word)s” is no number. Write it as 1234.56: a point, no thousands separators.")
        raise CellError(column, text % {"word": shown(word)})
    return value


def currency_of(word: str, column: str) -> str:
    code = word.strip()
    if len(code) != 3 or not (code.isascii() and code.isalpha() and code.isupper()):
        text = _("“%(word)s” is no currency. Write its three letters, as USD.")
        raise CellError(column, text % {"word": shown(word)})
    return code


def period_of(cells: Cells, start_column: str, end_column: str, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """[start, end) in UTC. Dates are whole days in `zone`, the last one included; without an end it is the one day."""
    start_word, end_word = cells.get(start_column, ""), cells.get(end_column, "")
    start = moment_of(start_word, start_column, zone)
    if end_word:
        end = moment_of(end_word, end_column, zone)
        end = following(end, zone) if is_date(end_word) else end
    elif is_date(start_word):
        end = following(start, zone)
    else:
        raise CellError(end_column or start_column, _("It is empty. Say until when, or give only a date as the start."))
    if not start < end <= start + LONGEST:
        raise CellError(end_column, _("The end has to come after the start, and within 400 days."))
    return start.astimezone(UTC), end.astimezone(UTC)


def following(day: datetime, zone: ZoneInfo) -> datetime:
    return datetime.combine(day.date() + ONE_DAY, time(), zone)


def is_date(word: str) -> bool:
    return len(word) == len("2026-11-30")


def moment_of(word: str, column: str, zone: ZoneInfo) -> datetime:
    """A time with a zone of its own, or one of the bill's zone."""
    read = parsed(word)
    found = read if read is None or read.tzinfo else read.replace(tzinfo=zone)
    if found is None or not FIRST <= found < LAST:
        text = _("“%(word)s” is no time. Write it as 2026-11-30 or 2026-11-30T08:00:00Z.")
        raise CellError(column, text % {"word": shown(word)})
    return found


def parsed(word: str) -> datetime | None:
    if apart := ZONE_APART.match(word):
        hours, minutes = apart[2] or "+00", apart[3] or "00"
        word = f"{apart[1]}{hours}:{minutes}"
    try:
        return datetime.combine(date.fromisoformat(word), time()) if is_date(word) else datetime.fromisoformat(word)
    except ValueError:
        return None
