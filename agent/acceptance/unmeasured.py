"""A part that cannot be measured here is left out with its reason: it is never a zero."""

from __future__ import annotations


class NotMeasuredError(Exception):
    """The message says why, for whoever reads the report."""
