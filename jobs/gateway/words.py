"""How gateways stand, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

STATES: Mapping[str, str | Promise] = {
    "up": pgettext_lazy("gateway", "open"),
    "no_replica": _("no server answers: callers are told to come again"),
    "no_token": _("it has no token yet, and lets nobody in"),
    "bad_config": _("nginx refuses its configuration; the log of the process “gateway” says why"),
    "closed": pgettext_lazy("gateway", "closed"),
    "silent": _("the process “gateway” does not run"),
    "new": _("about to open"),
}
MARKS = {"up": "working", "no_replica": "stalled", "bad_config": "stalled", "silent": "unknown", "new": "unknown"}


def state_text(code: str) -> str:
    return str(STATES.get(code, code))
