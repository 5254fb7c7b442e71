"""Reading the kernel's small text files below a root that tests can move."""

from __future__ import annotations

import os


def read_text(path: str) -> str:
    """The file's text; bytes that are no UTF-8 become U+FFFD. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        chunks = []
        while chunk := os.read(descriptor, 65536):
            chunks.append(chunk)
    finally:
        os.close(descriptor)
    return b"".join(chunks).decode("utf-8", "replace")


def read_text_or_none(path: str) -> str | None:
    try:
        return read_text(path)
    except OSError:
        return None


def read_number(path: str) -> int | None:
    """The integer that a one-line kernel file holds; None when it is absent, unreadable or says ``max``."""
    text = read_text_or_none(path)
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None
