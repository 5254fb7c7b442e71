"""Forms that take a table as a file or as pasted text."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext_lazy as _

MAX_BYTES = 2_000_000


class FileOrText(forms.Form):
    """For forms with the fields `file` and `csv`: what was chosen as a file stands in `csv` too, so that it can be sent again."""

    # What to do with a file of more than MAX_BYTES.
    too_large: ClassVar[Any]

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.get("file") and "file" not in self.errors:
            given["csv"] = self._text_of(given["file"])
        if not given.get("csv") and not self.errors:
            self.add_error("file", _("Choose a file, or paste its text."))
        return given

    def _text_of(self, file: Any) -> str:
        if file.size > MAX_BYTES:
            self.add_error("file", self.too_large)
            return ""
        try:
            text: str = file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            self.add_error("file", _("The file is no text in UTF-8. Save it as CSV in UTF-8."))
            return ""
        return text
