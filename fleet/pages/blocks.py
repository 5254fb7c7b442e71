"""The blocks of a fleet map as markup: a page has thousands, so they are written in one pass and their words looked up once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from fleet.pages.machine import MachineView, percent_text
from fleet.states import GpuState
from fleet.words import state_words


class Blocks:
    """Writes the machines of one team in the reader's language. Names come from machines and providers: everything is escaped."""

    def __init__(self, team_slug: str) -> None:
        self.place = reverse("instance", args=[team_slug, 0]).removesuffix("0/")
        self.an_hour, self.no_price = _("%(money)s an hour"), _("price not known")
        self.levels = _("%(busy)s, memory %(memory)s")
        self.labels = (_("GPUs"), _("State"), _("Busy"), _("Owner"), _("Where"))
        self.counted: dict[tuple[tuple[GpuState, int], ...], str] = {}

    def html(self, machines: Iterable[MachineView]) -> SafeString:
        return SafeString("\n".join(map(self._block, machines)))

    def _block(self, view: MachineView) -> str:
        machine, worst = view.instance, view.worst
        priced = "" if view.price is None else f' data-price="{view.price}" data-sign="{escape(view.currency_sign)}"'
        mark = "" if worst == GpuState.WORKING else f' data-s="{worst}"'
        return (
            f'<a class="machine" id="m{machine.pk}" href="{self.place}{machine.pk}/" data-machine="{machine.pk}"'
            f' data-worst="{worst}" data-gpus="{escape(view.gpu_label)}"{priced} data-read="{view.read_epoch}"'
            f' data-stale="{view.stale_seconds}" aria-label="{escape(self._spoken(view))}" data-tip="{escape(self._tip(view))}">'
            f'<span class="m1"><b>{escape(machine.name)}</b></span><span class="m2"><em{mark}>{escape(view.headline)}</em>'
            f"<span>{escape(view.price_text)}</span></span>{view.tiles_html}</a>"
        )

    def _states(self, view: MachineView) -> str:
        key = tuple(view.counts.items())
        if key not in self.counted:
            self.counted[key] = state_words(view.counts)
        return self.counted[key] or view.gpus_label

    def _spoken(self, view: MachineView) -> str:
        """The block in one breath, for those who hear the page."""
        price = self.no_price if view.price is None else self.an_hour % {"money": view.price_text}
        return f"{view.instance.name}, {view.gpus_label}, {self._states(view)}, {price}"

    def _tip(self, view: MachineView) -> str:
        """What the card beside a focused block shows, as JSON; the page's script writes it as plain text."""
        levels = {"busy": percent_text(view.busy_percent), "memory": percent_text(view.memory_percent)}
        words = (view.gpus_label, self._states(view), self.levels % levels, view.people_label, view.where)
        facts = list(zip(self.labels, words, strict=True))
        return json.dumps({"name": view.instance.name, "price": view.price_text, "facts": facts}, ensure_ascii=False)
