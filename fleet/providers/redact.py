"""Texts from outside, made fit to keep and to show."""

from __future__ import annotations

from collections.abc import Iterable

MASK = "•••"


def cut(text: object, limit: int) -> str:
    """One line of at most `limit` characters; control characters, which no database or terminal should get, become spaces."""
    # A provider may send megabytes: look only at what can be kept.
    head = str(text)[: limit * 2]
    return " ".join("".join(char if char.isprintable() else " " for char in head).split())[:limit]


def redact(text: str, secrets: Iterable[str]) -> str:
    """`text` without any of `secrets`; providers echo keys in their error messages."""
    for secret in sorted((secret for secret in secrets if len(secret) >= 4), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text
