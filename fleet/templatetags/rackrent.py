"""Template tags of every page; a builtin, so templates need no {% load %}."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet import formats as figures
from fleet.panels import NavItem, Panel
from fleet.states import GpuState
from fleet.words import state_word

register = template.Library()
# After so many reading periods without a new one, a figure looks old.
OLD_AFTER_PERIODS = 3

register.filter("bytes", figures.bytes_text)
register.filter("rate", figures.rate_text)
register.filter("amounts", figures.amounts_text)
register.filter("whole_amounts", figures.whole_amounts_text)
register.filter("duration", figures.duration_text)
register.filter("figure", figures.number_text)
register.filter("milliseconds", figures.milliseconds_text)


@register.simple_tag(takes_context=True)
def team_url(context: template.Context, name: str, *args: Any) -> str:
    """Address of a page of the team that this page belongs to."""
    return reverse(name, args=[context["request"].team.slug, *args])


@register.simple_tag(takes_context=True)
def draw(context: template.Context, panel: Panel, *args: Any) -> str:
    """A registered panel, or nothing when it has nothing to show."""
    request = context["request"]
    filled = panel.context(request, *args)
    return "" if filled is None else render_to_string(panel.template, filled, request)


@register.simple_tag(takes_context=True)
def nav_count(context: template.Context, item: NavItem, *, swapped: bool = False) -> SafeString:
    """The badge of an entry of the rail; hidden where nothing waits, so that a later answer can fill it."""
    if item.count is None:
        return SafeString("")
    count = item.count(context["request"])
    label = item.count_words(count) if item.count_words else ngettext("%(n)d open", "%(n)d open", count) % {"n": count}
    return format_html(
        '<span class="count" id="count-{}" aria-label="{}"{}{}>{}</span>',
        item.name,
        label,
        SafeString("" if count else " hidden"),
        SafeString(' hx-swap-oob="true"' if swapped else ""),
        count,
    )


@register.simple_tag
def icon(name: str) -> SafeString:
    """A 20 px line icon of static/img/icons.svg; decorative, the label stands beside it."""
    return format_html(
        '<svg class="i" viewBox="0 0 20 20" aria-hidden="true"><use href="{}#{}"/></svg>', static("img/icons.svg"), name
    )


@register.simple_tag
def age(moment: datetime | None, period_seconds: float = 0, label: str = "") -> SafeString:
    """How old a figure is; past three reading periods it looks old. Period 0: it never grows old. None: "never".

    The page's script keeps it ticking; `label` stands before the age ("prices 9 min").
    """
    if moment is None:
        return format_html('<span class="age old">{}</span>', _("never"))
    seconds = (timezone.now() - moment).total_seconds()
    old = 0 < period_seconds * OLD_AFTER_PERIODS < seconds
    return format_html(
        '<time class="age{}" datetime="{}" data-period="{}" data-label="{}" title="{}">{}{}</time>',
        " old" if old else "",
        moment.isoformat(),
        f"{period_seconds:g}",
        label,
        formats.date_format(timezone.localtime(moment), "DATETIME_FORMAT"),
        f"{label} " if label else "",
        figures.age_text(seconds),
    )


@register.simple_tag
def age_units() -> str:
    """The units of ages as JSON, for the page's script."""
    return json.dumps(figures.age_units(), ensure_ascii=False)


@register.simple_tag
def clock(moment: datetime, style: str = "H:i") -> SafeString:
    """A moment in the reader's time zone, with the exact one behind it."""
    local = timezone.localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        formats.date_format(local, "DATETIME_FORMAT"),
        formats.date_format(local, style),
    )


@register.simple_tag
def recent_clock(moment: datetime) -> SafeString:
    """A moment of the last days: hour and minute, after its weekday where that is not today's."""
    today = timezone.localdate() == timezone.localtime(moment).date()
    return clock(moment, "H:i" if today else "D H:i")


@register.simple_tag
def recent_clock_text(moment: datetime) -> str:
    """The same for sentences: hour and minute, after its weekday where that is not today's."""
    local = timezone.localtime(moment)
    return formats.date_format(local, "H:i" if timezone.localdate() == local.date() else "D H:i")


@register.simple_tag
def countdown(seconds: int) -> SafeString:
    """What is left of a time that runs down; the page's script goes on in the same words."""
    return format_html("{}", figures.countdown_text(seconds))


@register.simple_tag
def clock_text(moment: datetime) -> str:
    """Hour and minute in the reader's time zone, for attributes."""
    return formats.date_format(timezone.localtime(moment), "H:i")


@register.simple_tag
def current_zone() -> str:
    """The IANA name of the zone that times on this page are in."""
    return timezone.get_current_timezone_name()


@register.simple_tag
def mark(state: GpuState | str) -> SafeString:
    """The drawing of a state; the word stands beside it."""
    return format_html('<i class="gpu" data-s="{}"></i>', GpuState(state).value)


@register.simple_tag
def badge(state: GpuState | str, words: str = "") -> SafeString:
    """Mark and word of a state."""
    known = GpuState(state)
    return format_html(
        '<span class="badge" data-s="{0}"><i class="gpu" data-s="{0}"></i>{1}</span>',
        known.value,
        words or state_word(known),
    )


@register.simple_tag
def unknown(word: str = "") -> SafeString:
    """What is not known: hatched, never a zero."""
    return format_html('<span class="unk"><span>{}</span></span>', word or _("unknown"))


@register.filter
def money(amount: Decimal | None, currency: str = "USD") -> str:
    return figures.UNKNOWN if amount is None else figures.money_text(amount, currency)


@register.filter
def whole_money(amount: Decimal | None, currency: str = "USD") -> str:
    """Of a month or a budget, without cents."""
    return figures.UNKNOWN if amount is None else figures.whole_money_text(amount, currency)


@register.filter("state_word")
def state_word_of(state: GpuState | str) -> str:
    return state_word(GpuState(state))


@register.filter
def entry_of(entries: Mapping[Any, Any] | None, key: Any) -> Any:
    """The entry under a key that only the template knows; None where there is none."""
    return entries.get(key) if entries else None
