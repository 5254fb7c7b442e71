"""What keeps a planned act back, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

WAITS: Mapping[str, str | Promise] = {
    "held": gettext_lazy("a hold keeps the machine; it is done when the hold ends"),
    "operation_open": gettext_lazy("something else is under way with the machine"),
    "hook": gettext_lazy("the machine's own action before a stop runs"),
}


def waits_words(code: str) -> str:
    return str(WAITS.get(code, code))
