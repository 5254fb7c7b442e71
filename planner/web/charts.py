"""Figures of the page's charts as plain numbers; colours are tokens that the page's script resolves."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from planner.web.options import Row

GIB = 2**30
# A break-even beyond this is drawn at the edge: never.
FARTHEST = 1.2


def chart_data(told: Row) -> dict[str, Any]:
    """By the name of the chart; empty where nothing is chosen."""
    found: dict[str, Any] = {}
    if told["memory"]:
        found["memory"] = memory_chart(told["memory"])
    if told["owning"] and told["owning"]["comparison"]:
        found["owning"] = owning_chart(told["owning"]["comparison"])
    return found


def memory_chart(memory: Row) -> Row:
    """One stacked bar in GiB, largest term first, with the whole's low and high end, and the card as its driver shows it."""
    total = memory["totals"]["device"]
    terms = sorted(memory["terms"], key=lambda term: -float(term["bytes"]["expected"]))
    card = memory["card_bytes"] / GIB
    return {
        "terms": [{"name": term["name"], "gib": round(term["bytes"]["expected"] / GIB, 3)} for term in terms],
        "low": round(total["low"] / GIB, 3),
        "expected": round(total["expected"] / GIB, 3),
        "high": round(total["high"] / GIB, 3),
        "card": round(card, 2),
        "card_words": _("card: %(gib)s GiB") % {"gib": f"{card:.1f}"},
    }


def owning_chart(comparison: Row) -> Row:
    """Break-even in per cent with one input lower and higher, and today's utilization as a line."""
    even = comparison["break_even_utilization"]
    return {
        "bands": [_band(band) for band in comparison["sensitivity"]],
        "even": None if even is None else float(even) * 100,
        "utilization": float(comparison["utilization"]) * 100,
        "utilization_words": _("yours"),
        "farthest": FARTHEST * 100,
    }


def _band(band: Row) -> Row:
    ends = [FARTHEST if end is None else min(float(end), FARTHEST) for end in (band["at_low"], band["at_high"])]
    never = None in {band["at_low"], band["at_high"]}
    words = [_("never") if end is None else f"{float(end) * 100:.0f} %" for end in (band["at_low"], band["at_high"])]
    low, high = sorted(ends)
    return {"name": band["name"], "low": low * 100, "high": high * 100, "never": never, "words": " – ".join(words)}
