"""Text and marks meet WCAG AA in both themes, by the tokens themselves."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

TOKENS = Path(settings.BASE_DIR, "static/css/tokens.css").read_text()
PAIRS: dict[str, str] = dict(re.findall(r"--([\w-]+):\s*light-dark\((#[0-9a-f]{6}, #[0-9a-f]{6})\)", TOKENS))
TEXT = ("ink", "ink-2", "ink-3", "working-ink", "held-ink", "starved-ink", "stalled-ink")
FILLS = ("working", "held", "free", "starved", "stalled", "unknown", "stopped")


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def colour(token: str, theme: int) -> str:
    return PAIRS[token].split(", ")[theme]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("surface", ["bg", "panel", "raise"])
@pytest.mark.parametrize("token", TEXT)
def test_text_reads_on_every_surface(token, surface, theme):
    assert contrast(colour(token, theme), colour(surface, theme)) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("token", FILLS)
def test_marks_stand_out_from_their_panel(token, theme):
    assert contrast(colour(token, theme), colour("panel", theme)) >= 3


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_focus_and_figures_on_tiles_are_seen(theme):
    assert contrast(colour("focus", theme), colour("panel", theme)) >= 3
    assert contrast(colour("on-working", theme), colour("working", theme)) >= 4.5
