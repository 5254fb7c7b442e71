"""What may stand in an order: names of environment variables and paths within the job's directory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
MOST, MOST_BYTES = 200, 64 * 1024
# Ours, by which processes are found and ranks know each other.
OURS = re.compile(r"RACKRENT_")


def environment_problem(values: Mapping[str, str]) -> str | Promise | None:
    """What is wrong with these variables; None = nothing."""
    if len(values) > MOST or sum(len(value) for value in values.values()) > MOST_BYTES:
        return _("At most %(n)d variables with 64 KiB together.") % {"n": MOST}
    for name, value in values.items():
        if not NAME.fullmatch(name):
            return _("%(name)s is no name of a variable: letters, digits and _ only, no digit first.") % {
                "name": name[:40]
            }
        if OURS.match(name):
            return _("Names that begin with RACKRENT_ are set by Rackrent itself: choose another for %(name)s.") % {
                "name": name
            }
        if "\0" in value:
            return _("The value of %(name)s has a NUL character.") % {"name": name}
    return None


def is_relative(path: str) -> bool:
    """Whether it stays below the directory that it is relative to."""
    parts = PurePosixPath(path)
    return bool(parts.parts) and not parts.is_absolute() and ".." not in parts.parts and "\0" not in path
