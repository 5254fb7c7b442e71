"""Looking for texts in a log. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from jobs.diagnosis.evidence import Line

# A trace of a failure is rarely longer, with the source lines that some print.
TRACE_LINES = 160
_TRACE = re.compile(r"Traceback \(most recent call last\)")
# Ranks write into one log; so do the processes of a server.
_WRITER = re.compile(r"^\s*(\[(?:rank|default)\d+\]|\(\w+(?: \w+)? pid=\d+\))")


def matches(lines: Iterable[Line], pattern: re.Pattern[str]) -> Iterator[tuple[Line, re.Match[str]]]:
    for line in lines:
        if (found := pattern.search(line.text)) is not None:
            yield line, found


def first(lines: Iterable[Line], pattern: re.Pattern[str]) -> tuple[Line, re.Match[str]] | None:
    return next(matches(lines, pattern), None)


def trace_before(lines: tuple[Line, ...], line: Line) -> tuple[Line, ...]:
    """The traceback that ends in a line, without what others wrote in between; the lines before it where there is none."""
    at = next(place for place, one in enumerate(lines) if one is line)
    begin, by = max(0, at - TRACE_LINES), writer(line)
    for place in range(at, begin - 1, -1):
        if _TRACE.search(lines[place].text) and writer(lines[place]) == by:
            return tuple(one for one in lines[place : at + 1] if writer(one) == by)
    return lines[begin : at + 1]


def writer(line: Line) -> str:
    """Which rank or process wrote it, where the line says so."""
    found = _WRITER.search(line.text)
    return found[1] if found else ""


def says(lines: Iterable[Line], pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(line.text) for line in lines)


def numbers_of(lines: Iterable[Line]) -> tuple[int, ...]:
    """Of the first five: what a page shows."""
    return tuple(line.number for line in lines)[:5]
