"""Filters of the planner's pages, beside the builtin ones of every page."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

from django import template
from django.utils import timezone
from django.utils.translation import ngettext

from planner.web.words.terms import (
    CHECKPOINTING,
    COUNTER_MEANINGS,
    COUNTERS,
    FITS,
    OFFLOADS,
    PARTS,
    PRICE_KINDS,
    STEPS,
)

register = template.Library()
_WORDS = {
    "checkpointing": CHECKPOINTING,
    "counter": COUNTERS,
    "counter_meaning": COUNTER_MEANINGS,
    "fit": FITS,
    "offload": OFFLOADS,
    "part": PARTS,
    "price_kind": PRICE_KINDS,
    "step": STEPS,
}


@register.filter
def times(amount: float, factor: float) -> float:
    return float(amount) * float(factor)


@register.filter
def percent(share: float | Decimal | None) -> str:
    """0.597 as "60 %"; under one in ten with a decimal."""
    if share is None:
        return "—"
    number = 100 * float(share)
    return f"{number:.1f} %" if 0 < abs(number) < 10 else f"{number:.0f} %"


@register.filter
def billions(count: float) -> str:
    """Parameters as people say them: "8.03 B", "494 M"."""
    return f"{count / 1e9:.3g} B" if count >= 1e9 else f"{count / 1e6:.3g} M"


@register.filter
def seconds(amount: float) -> str:
    """A short time with three digits in the unit that reads best."""
    if amount >= 1:
        return f"{amount:,.2f} s" if amount < 100 else f"{amount:,.0f} s"
    return f"{amount * 1e3:.3g} ms" if amount >= 1e-3 else f"{amount * 1e6:.3g} µs"


@register.filter
def bits(per_second: float) -> str:
    unit, size = ("Gbit/s", 1e9) if per_second >= 1e9 else ("Mbit/s", 1e6)
    return f"{per_second / size:.3g} {unit}"


@register.filter
def layout_words(layout: dict[str, Any]) -> str:
    """What is split, as in DP 4 · TP 2 · ZeRO-1."""
    parts = (("DP", "data"), ("TP", "tensor"), ("PP", "pipeline"), ("CP", "context"), ("EP", "expert"))
    said = [f"{short} {layout[name]}" for short, name in parts if layout[name] > 1]
    if layout["zero_stage"]:
        said.append(f"ZeRO-{layout['zero_stage']}")
    if layout["offload"] != "none":
        said.append(plan_word(layout["offload"], "offload"))
    return " · ".join(said) or "—"


@register.filter
def days_old(day: date) -> str:
    """Prices are dated: how long ago that is."""
    days = max(0, (timezone.localdate() - day).days)
    return ngettext("%(days)d day old", "%(days)d days old", days) % {"days": days}


@register.filter
def plan_word(key: str, kind: str) -> str:
    return str(_WORDS[kind].get(key, key))


@register.filter
def share_of(part: float, whole: float) -> float:
    """A percentage for the width of a bar."""
    return 100 * part / whole if whole else 0.0
