"""A name for a browser, from what it says of itself: enough to know one's own again."""

from __future__ import annotations

import re

# In this order: Edge and Opera also say Chrome, and Chrome also says Safari.
BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrom", "Chrome"),
    ("Safari/", "Safari"),
)
SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def browser_name(user_agent: str) -> str:
    """Such as "Firefox, Linux"; for a program that is no browser its first word, for silence nothing."""
    browser = next((name for mark, name in BROWSERS if mark in user_agent), "")
    if not browser:
        return re.split(r"[/\s]", user_agent, maxsplit=1)[0]
    system = next((name for mark, name in SYSTEMS if mark in user_agent), "")
    return f"{browser}, {system}" if system else browser
