"""What an agent sends as the result of an action: any JSON, of a machine that may be hostile. Bounded, and of characters that show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MAX_DEPTH = 4
MAX_ENTRIES = 64
MAX_CHARACTERS = 500
MAX_NUMBER = 1 << 63


def clean_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """What is too deep, too many or no number is left out; what is too long is cut."""
    return _mapping(result, MAX_DEPTH)


def _mapping(data: Mapping[str, Any], depth: int) -> dict[str, Any]:
    pairs = list(data.items())[:MAX_ENTRIES]
    cleaned = {clean_lines(str(name), 64): _value(value, depth - 1) for name, value in pairs}
    return {name: value for name, value in cleaned.items() if value is not None}


def _value(value: object, depth: int) -> Any:
    """None: left out."""
    if isinstance(value, str):
        return clean_lines(value, MAX_CHARACTERS)
    if isinstance(value, bool | int | float):
        # False for NaN too, and an integer of any length can be compared, but not made a float.
        return value if abs(value) < MAX_NUMBER else None
    if isinstance(value, Mapping) and depth > 0:
        return _mapping(value, depth)
    if isinstance(value, list) and depth > 0:
        return [kept for one in value[:MAX_ENTRIES] if (kept := _value(one, depth - 1)) is not None]
    return None


def clean_lines(text: str, limit: int) -> str:
    """As sanitise.clean, but the ends of lines stay: a program's last words are read as lines."""
    return "".join(letter for letter in text[-limit:] if letter.isprintable() or letter == "\n")
