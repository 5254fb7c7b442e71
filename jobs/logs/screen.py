"""A line of a log as a page may show it: without what terminals obey. Pure. It is still hostile as HTML."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["on_screen", "without_escapes"]

# What a page shows of one line; the file has all of it.
LONGEST_SHOWN = 4_000
# ECMA-48: control sequences, strings up to their end, and two-character escapes.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")


def without_escapes(text: str) -> str:
    return _ESCAPES.sub("", text) if "\x1b" in text else text


def on_screen(text: str) -> str:
    shown = without_escapes(text[: 2 * LONGEST_SHOWN])
    if not shown.isprintable():
        shown = "".join(map(_kept, shown))
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]} …"


def _kept(letter: str) -> str:
    """Control, format and bidirectional characters go: a line must not look like another."""
    if letter.isprintable() or letter == "\t":
        return letter
    return " " if unicodedata.category(letter) == "Zs" else ""
