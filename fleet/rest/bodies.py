"""What a caller sends to change something: a body of known fields, and refusals of use-cases that name theirs."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from django.core.exceptions import NON_FIELD_ERRORS
from django.core.exceptions import ValidationError as FormError
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ValidationError

T = TypeVar("T")


class Body(serializers.Serializer[T]):
    """Refuses a field that it does not know: a mistyped one would otherwise change nothing, and say it had."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            for name in data:
                if name not in self.fields:
                    raise ValidationError({str(name)[:100]: self._unknown(str(name))})
        return super().to_internal_value(data)

    def _unknown(self, name: str) -> str:
        if close := difflib.get_close_matches(name, self.fields, n=1):
            return _("There is no such field here. Did you mean `%(name)s`?") % {"name": close[0]}
        return _("There is no such field here. It takes: %(names)s.") % {"names": ", ".join(self.fields)}


@contextmanager
def naming_fields(*refusals: type[Exception]) -> Iterator[None]:
    """Turns what a use-case refuses into a 400. Such an exception has a text for the caller, and in `field` the argument that is wrong."""
    try:
        yield
    except refusals as refusal:
        raise ValidationError({getattr(refusal, "field", None) or "non_field_errors": str(refusal)}) from None


@contextmanager
def naming_form_fields() -> Iterator[None]:
    """The same for use-cases that refuse in Django's own way: by field, or as a whole."""
    try:
        yield
    except FormError as refusal:
        named = refusal.message_dict if hasattr(refusal, "error_dict") else {NON_FIELD_ERRORS: refusal.messages}
        field, texts = next(iter(named.items()))
        raise ValidationError({"non_field_errors" if field == NON_FIELD_ERRORS else field: texts[0]}) from None
