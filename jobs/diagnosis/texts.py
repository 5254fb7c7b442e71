"""Looking for texts in a log. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jobs.diagnosis.evidence import Line

# A trace of a failure is rarely longer.
TRACE_LINES = 80


def matches(lines: Iterable[Line], pattern: re.Pattern[str]) -> Iterator[tuple[Line, re.Match[str]]]:
    for line in lines:
        if (found := pattern.search(line.text)) is not None:
            yield line, found


def first(lines: Iterable[Line], pattern: re.Pattern[str]) -> tuple[Line, re.Match[str]] | None:
    return next(matches(lines, pattern), None)


def trace_before(lines: tuple[Line, ...], line: Line) -> tuple[Line, ...]:
    """The traceback that ends in a line; the lines before it where there is none."""
    at = next(place for place, one in enumerate(lines) if one is line)
    begin = max(0, at - TRACE_LINES)
    for place in range(at, begin, -1):
        if (
            lines[place].text.lstrip().startswith("Traceback (most recent call last)")
            or "]: Traceback (most recent" in lines[place].text
        ):
            return lines[place : at + 1]
    return lines[begin : at + 1]


def says(lines: Iterable[Line], pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(line.text) for line in lines)
