from __future__ import annotations

import re


def found(pattern: str, text: str) -> str:
    """The first group of the pattern, which must be there."""
    match = re.search(pattern, text, re.DOTALL)
    assert match, f"{pattern} is not in the page"
    return match[1]
