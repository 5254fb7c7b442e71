"""Numbers as trainers print them. Pure."""

from __future__ import annotations

import re
from math import isfinite

NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|nan|inf|NaN|Inf|NAN|INF)"
_UNITS = {"": 1, "k": 1000, "m": 1000**2, "b": 1, "kb": 1000, "mb": 1000**2, "gb": 1000**3, "tb": 1000**4}
_UNITS |= {"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}
_SIZE = re.compile(rf"({NUMBER})\s*([kmgtKMGT]?i?[bB]?)")


def number(text: str | None) -> float | None:
    """None for what is no number. "1,234.5" is one; NaN stays NaN: a loss that is none is what a reader has to see."""
    try:
        return None if text is None else float(text.replace(",", ""))
    except ValueError:
        return None


def whole(text: str | None) -> int | None:
    value = number(text)
    return int(value) if value is not None and isfinite(value) and value == int(value) else None


def size_bytes(text: str) -> int | None:
    """Of "3.2GiB", "512 MB" or "5.1GB"."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        return None
    value, unit = number(found[1]), _UNITS.get(found[2].lower())
    return None if value is None or unit is None or not isfinite(value * unit) else round(value * unit)
