"""Why something is blocked or planned, in the reader's language. Whoever writes such rows registers the words for its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

Words = Callable[[Mapping[str, Any]], str]
_words: dict[str, Words] = {}


class Reasoned(Protocol):
    """A LaunchBlock or a PlannedAction: `values` are for the words of its source, `reason` is what it said when it was written."""

    source: str
    reason: str
    values: dict[str, Any]


def register_reason(kind: str, words: Words) -> None:
    """`kind`: what a source begins with, "budget" of "budget:7"."""
    if kind in _words:
        raise ValueError(f"The words of {kind!r} are registered already")
    _words[kind] = words


def reason_text(row: Reasoned) -> str:
    return reason_of(row.source, row.values, row.reason)


def reason_of(source: str, values: Mapping[str, Any], reason: str) -> str:
    words = _words.get(kind_of(source))
    return words(values) if words and values else reason


def kind_of(source: str) -> str:
    """What wrote it: "budget" of "budget:7"."""
    return source.partition(":")[0]
