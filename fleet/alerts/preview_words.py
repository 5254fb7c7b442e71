"""How often a rule would have fired, in words."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from fleet.alerts.causes import Text
from fleet.alerts.preview import SPAN, Preview

WHYS: Mapping[str, Text] = {
    "no_history": gettext_lazy("Nothing is kept from which its past could be counted."),
    "other_store": gettext_lazy("Readings are kept in another database, in which the past is not counted."),
    "too_long": gettext_lazy("Counting its past takes too long just now. Try again later."),
}


def preview_text(preview: Preview) -> str:
    if preview.times is None or preview.since is None:
        return str(WHYS.get(preview.why, preview.why))
    if not preview.times:
        return _("It would not have fired %(span)s.") % {"span": _span(preview)}
    times = ngettext("%(n)d time", "%(n)d times", preview.times) % {"n": preview.times}
    machines = ngettext("%(n)d machine", "%(n)d machines", preview.machines) % {"n": preview.machines}
    said = {"times": times, "machines": machines, "span": _span(preview)}
    text = _("It would have fired %(times)s on %(machines)s %(span)s.") % said
    return f"{text} {_('Hours that follow each other count once.')}" if preview.counted == "hours" else text


def _span(preview: Preview) -> str:
    assert preview.since is not None
    if preview.until - preview.since >= SPAN:
        return _("in the last 30 days")
    at = date_format(timezone.localtime(preview.since), "Y-m-d")
    return _("since %(at)s, as far back as readings reach") % {"at": at}
