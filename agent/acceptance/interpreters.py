"""Which Python of this machine has torch, and may be run by us.

What a Python runs, its packages included, runs with our rights and could read our token: only what belongs to root or to our own
user, and nobody else can change, is run.
"""

from __future__ import annotations

import grp
import os
import pwd
import re
import stat

from agent.acceptance.unmeasured import NotMeasuredError
from agent.host.packages import places_with

_LIBRARY = re.compile(r"^(?P<prefix>.*)/lib/(?P<name>python3(?:\.\d+)?)/(?:site|dist)-packages$")


def find_python(package: str) -> str:
    """The first interpreter that has the package and may be trusted. Raises NotMeasuredError."""
    why = f"no Python with {package} was found"
    for place in places_with(package):
        interpreter = _interpreter_of(place)
        if interpreter is None:
            continue
        doubtful = _untrusted(interpreter) or _untrusted(os.path.join(place, package))
        if not doubtful:
            return interpreter
        why = f"{interpreter} is not run: others could change {doubtful}"
    raise NotMeasuredError(why)


def _interpreter_of(place: str) -> str | None:
    matched = _LIBRARY.match(place)
    if matched is None:
        return None
    prefix, name = matched.group("prefix"), matched.group("name")
    # Debian's own Python keeps what pip installs below /usr/local
    prefixes = [prefix, "/usr"] if prefix == "/usr/local" else [prefix]
    candidates = [f"{one}/bin/{word}" for one in prefixes for word in (name, "python3", "python")]
    return next((path for path in candidates if os.access(path, os.X_OK)), None)


def _untrusted(path: str) -> str | None:
    """The first file or directory on the way that somebody else may change; None where there is none."""
    ways = [*_way_to(os.path.abspath(path)), *_way_to(os.path.realpath(path))]
    return next((one for one in ways if not _is_ours(one)), None)


def _way_to(path: str) -> list[str]:
    return [path] if path == "/" else [path, *_way_to(os.path.dirname(path))]


def _is_ours(path: str) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    if found.st_uid not in (0, os.geteuid()):
        return False
    if stat.S_ISLNK(found.st_mode):
        return True
    if found.st_mode & stat.S_IWOTH:
        return False
    return not found.st_mode & stat.S_IWGRP or _is_nobodys(found.st_gid)


def _is_nobodys(gid: int) -> bool:
    """Debian gives /usr/local to a group that has no members."""
    try:
        members = grp.getgrgid(gid).gr_mem
    except KeyError:
        members = []
    ours = (0, os.geteuid())
    return not members and all(user.pw_uid in ours for user in pwd.getpwall() if user.pw_gid == gid)
