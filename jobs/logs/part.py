"""A part of a log as it was read from its machine. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

# A line without end is cut: it is no line of a log.
LONGEST_LINE = 16 * 1024
# Shorter ones would hide half of a log, and protect nothing.
SHORTEST_SECRET = 6


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a log from `offset` on. `skipped`: bytes before it that were passed over, because the log grew faster than it is read."""

    offset: int
    data: bytes
    skipped: int = 0


def whole_lines(part: Part, *, is_last: bool) -> Part:
    """Up to the last end of a line; all of it where nothing follows, or where a line has no end."""
    if is_last:
        return part
    end = part.data.rfind(b"\n") + 1
    if not end and len(part.data) >= LONGEST_LINE:
        return part
    return replace(part, data=part.data[:end])


def masked(part: Part, secrets: Iterable[str]) -> Part:
    """With stars in place of secrets that the command printed: as many as the secret has bytes, so that offsets stay those of the machine."""
    pieces = {line.strip().encode() for secret in secrets for line in secret.splitlines()}
    wanted = sorted((piece for piece in pieces if len(piece) >= SHORTEST_SECRET), key=len, reverse=True)
    if not wanted:
        return part
    pattern = re.compile(b"|".join(re.escape(piece) for piece in wanted))
    return replace(part, data=pattern.sub(lambda found: b"*" * len(found[0]), part.data))
