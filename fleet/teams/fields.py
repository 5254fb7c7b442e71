"""Form fields that several packages use."""

from __future__ import annotations

from typing import Any

from django import forms


class LineField(forms.CharField):
    """One line of text. What a form cannot show as it is typed is left out: control characters, and those that turn a line around."""

    def to_python(self, value: Any) -> str:
        return one_line(super().to_python(value) or "")


def one_line(text: str) -> str:
    """`text` without invisible characters; white space of any kind becomes single blanks."""
    return " ".join("".join(char for char in text if char.isprintable() or char.isspace()).split())
