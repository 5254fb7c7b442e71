"""Keeping what machines' logs hold: whole lines in compressed chunks, the head and the newest of a log that is longer than its cap.

The cap is of what is stored of one node, compressed. Beyond it the middle goes: the first part says how a run began, the last how it ended.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import F, Sum
from django.db.models.functions import Length

from jobs.book.models import Node
from jobs.logs.models import LogChunk
from jobs.logs.part import Part

CHUNK_BYTES = 256 * 1024
LEVEL = 6
# Of the cap, for how a run began.
HEAD_SHARE = 0.25


@transaction.atomic
def store_part(*, node: Node, part: Part, at: datetime) -> int:
    """Stores it where the node's log stands, and moves on. Returns the number of its first line; 0 where somebody else did so already, or there is nothing."""
    expected = part.offset - part.skipped
    locked = Node.objects.select_for_update().get(pk=node.pk)
    if locked.log_offset != expected or not (part.data or part.skipped):
        return 0
    line, left_out = first = _next_line(locked), part.skipped
    for offset, data in _chunks(part):
        lines = data.count(b"\n") + (not data.endswith(b"\n"))
        LogChunk.objects.create(
            node=locked,
            offset=offset,
            size_bytes=len(data),
            first_line=line,
            lines=lines,
            read_at=at,
            left_out_bytes=left_out,
            data=zlib.compress(data, LEVEL),
        )
        line, left_out = line + lines, 0
    Node.objects.filter(pk=locked.pk).update(log_offset=part.offset + len(part.data))
    thin(locked)
    node.log_offset = part.offset + len(part.data)
    return first[0] if part.data else 0


def _chunks(part: Part) -> Iterator[tuple[int, bytes]]:
    begin = 0
    while begin < len(part.data):
        end = begin + CHUNK_BYTES
        if end < len(part.data):
            broken = part.data.rfind(b"\n", begin, end) + 1
            end = broken or end
        yield part.offset + begin, part.data[begin:end]
        begin = end


def _next_line(node: Node) -> int:
    last = LogChunk.objects.filter(node=node).order_by("-offset").values_list("first_line", "lines").first()
    return last[0] + last[1] if last else 1


def stored_bytes(node: Node) -> int:
    """Compressed."""
    return int(LogChunk.objects.filter(node=node).aggregate(total=Sum(Length("data")))["total"] or 0)


def thin(node: Node) -> int:
    """Drops what lies in the middle until the cap holds. Returns how many chunks went."""
    cap = settings.JOB_LOG_CAP_BYTES
    over = stored_bytes(node) - cap
    if over <= 0:
        return 0
    head, freed = 0, 0
    gone: list[tuple[int, int]] = []
    rows = list(
        LogChunk.objects.filter(node=node)
        .order_by("offset")
        .annotate(kept=Length("data"))
        .values_list("pk", "kept", "size_bytes", "left_out_bytes")
    )
    for place, (pk, kept, size, left_out) in enumerate(rows):
        if head + kept <= cap * HEAD_SHARE and not gone:
            head += kept
            continue
        if freed >= over or place == len(rows) - 1:
            break
        gone.append((pk, size + left_out))
        freed += kept
    if not gone:
        return 0
    following = rows[[row[0] for row in rows].index(gone[-1][0]) + 1][0]
    LogChunk.objects.filter(pk__in=[pk for pk, _size in gone]).delete()
    LogChunk.objects.filter(pk=following).update(left_out_bytes=F("left_out_bytes") + sum(size for _pk, size in gone))
    return len(gone)
