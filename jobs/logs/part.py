"""A part of a log as it was read from its machine. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from jobs.logs.secrets import hidden

# A line without end is cut: it is no line of a log.
LONGEST_LINE = 16 * 1024


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of a log from `offset` on. `skipped`: bytes before it that were passed over, because the log grew faster than it is read."""

    offset: int
    data: bytes
    skipped: int = 0


def ready(parts: Sequence[Part], secrets: Iterable[str], *, is_last: bool) -> Iterator[Part]:
    """What of the parts that were read in a row can be stored: whole lines, secrets hidden. What is left over is read again by the next visit.

    `is_last`: nothing follows, so that the last line is one whether it has an end or not.
    """
    pattern = hidden(secrets)
    rest = b""
    for place, part in enumerate(parts):
        joined = replace(part, offset=part.offset - len(rest), data=rest + part.data)
        whole = joined.data if is_last and place == len(parts) - 1 else _settled(joined.data, pattern)
        kept = _begun(replace(joined, data=whole))
        if kept.data or kept.skipped:
            yield replace(kept, data=pattern.sub(_stars, kept.data) if pattern else kept.data)
        rest = joined.data[len(whole) :]


def _settled(data: bytes, pattern: re.Pattern[bytes] | None) -> bytes:
    """Up to the last end of a line. A line without end is cut, but not where a secret may have begun."""
    end = data.rfind(b"\n") + 1
    if end or len(data) < LONGEST_LINE:
        return data[:end]
    cut = len(data) - LONGEST_LINE // 2
    for found in pattern.finditer(data) if pattern else ():
        if found.start() < cut < found.end():
            return data[: found.start()]
    return data[:cut]


def _begun(part: Part) -> Part:
    """After a gap the first line has no beginning: half of a secret could be in it."""
    if not part.skipped:
        return part
    first = part.data.find(b"\n") + 1 or len(part.data)
    return Part(part.offset + first, part.data[first:], part.skipped + first)


def _stars(found: re.Match[bytes]) -> bytes:
    """As many as it has bytes, so that offsets stay those of the machine."""
    return b"*" * len(found[0])
