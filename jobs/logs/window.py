"""A window on a stored log that moves backwards and forwards. Each call reads a bounded part of it and says how far it came."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import F

from jobs.book.models import Node
from jobs.logs.models import LogChunk
from jobs.logs.part import LONGEST_LINE
from jobs.logs.read import LogLine, lines_of, text_of
from jobs.logs.screen import without_escapes
from jobs.logs.severity import may_warn, warns

MOST_LINES = 500
# What one call looks through at most, uncompressed.
SCAN_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which lines: those that hold the words, without regard to case; with `warnings` those that complain."""

    words: str = ""
    warnings: bool = False

    def has(self, line: LogLine) -> bool:
        text = without_escapes(line.text[:LONGEST_LINE])
        return (not self.words or self.words.casefold() in text.casefold()) and (not self.warnings or warns(text))

    def may_be_in(self, text: str) -> bool:
        """Of a whole chunk, before its lines are looked at one by one. What terminals obey may stand within a word."""
        if "\x1b" in text:
            return True
        return (not self.words or self.words.casefold() in text.casefold()) and (not self.warnings or may_warn(text))

    def of(self, chunk: LogChunk, within: Callable[[int], bool]) -> list[LogLine]:
        if not self.may_be_in(text_of(chunk)):
            return []
        return [line for line in lines_of(chunk) if within(line.number) and self.has(line)]


@dataclass(frozen=True, slots=True)
class Found:
    """`lines` in the order of the log. `reached`: the number of the line up to which was looked, in the direction of the call; `more` lies behind it."""

    lines: list[LogLine]
    reached: int
    more: bool


def lines_before(node: Node, wanted: Wanted, *, before: int | None = None, most: int = MOST_LINES) -> Found:
    """The newest of them before that number; None = from the end."""
    rows = LogChunk.objects.filter(node=node).order_by("-offset")
    rows = rows if before is None else rows.filter(first_line__lt=before)
    found, scanned, reached = list[LogLine](), 0, before or 1
    for chunk in rows.iterator(chunk_size=4):
        if len(found) >= most or scanned >= SCAN_BYTES:
            return Found(found, reached, more=True)
        found = wanted.of(chunk, lambda number: before is None or number < before) + found
        scanned, reached = scanned + chunk.size_bytes, chunk.first_line
        if len(found) > most:
            return Found(found[-most:], found[-most].number, more=True)
    return Found(found, reached, more=False)


def lines_after(node: Node, wanted: Wanted, *, after: int, most: int = MOST_LINES) -> Found:
    """The first of them after that number."""
    rows = LogChunk.objects.filter(node=node).alias(end=F("first_line") + F("lines")).filter(end__gt=after + 1)
    found, scanned, reached = list[LogLine](), 0, after
    for chunk in rows.order_by("offset").iterator(chunk_size=4):
        if len(found) >= most or scanned >= SCAN_BYTES:
            return Found(found, reached, more=True)
        found += wanted.of(chunk, lambda number: number > after)
        scanned, reached = scanned + chunk.size_bytes, chunk.first_line + chunk.lines - 1
        if len(found) > most:
            return Found(found[:most], found[most - 1].number, more=True)
    return Found(found, reached, more=False)
