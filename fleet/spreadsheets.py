"""Cells of CSV files, which people open in spreadsheets."""

from __future__ import annotations

# What a spreadsheet takes for a formula when it opens the file (OWASP, "CSV Injection").
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def disarmed(value: object) -> str:
    """Empty for what is not known; text that a spreadsheet would take for a formula gets a quote in front."""
    if value is None:
        return ""
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(FORMULA_STARTS) else text
