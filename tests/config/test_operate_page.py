"""docs/operate.md against the code that it describes."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings

PAGE = (settings.BASE_DIR / "docs" / "operate.md").read_text()


def sources() -> str:
    return "".join(path.read_text() for path in Path(settings.BASE_DIR / "config").rglob("*.py"))


def test_it_names_every_variable_that_is_read():
    read = set(re.findall(r"""env_\w+\(\s*"([A-Z_]+)\"""", sources()))
    read |= set(re.findall(r"""os\.environ\.get\("(RACKRENT_[A-Z_]+)\"""", sources()))
    assert len(read) > 30
    assert sorted(name for name in read if f"`{name}`" not in PAGE and name not in PAGE) == []


def test_it_explains_every_check():
    ids = set(re.findall(r"rackrent\.([EW]\d{3})", sources()))
    assert len(ids) >= 15
    assert sorted(check for check in ids if check not in PAGE) == []
