"""A log as it grows, as plain text: what is stored, then what comes, until the job has ended."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

from channels.db import database_sync_to_async

from jobs.api.handover import Following
from jobs.api.watch import News, Standing
from jobs.book.models import Node
from jobs.logs.read import LogLine, lines_from

LINES_AT_ONCE, CHARACTERS_AT_ONCE = 2_000, 256 * 1024
# Whoever follows for longer asks again; the last line says from where.
LONGEST_SECONDS = 6 * 3600.0
# How long a token that was revoked goes on to be heard.
ALLOWED_SECONDS = 60.0
# What moves a cursor or names a window does so in the reader's terminal too: colours and the like are left out.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]P^_X][^\x07\x1b]*(?:\x07|\x1b\\)?|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class Place:
    """The attempt and the line with which to go on."""

    attempt: int
    line: int


@dataclass(frozen=True, slots=True)
class Part:
    """`place`: behind it. `more`: there is more already."""

    text: str
    place: Place
    more: bool


async def followed(wish: Following, news: News, may_go_on: Callable[[], Awaitable[bool]]) -> AsyncIterator[bytes]:
    """Ends with the job, when the caller may not read it any more, or after LONGEST_SECONDS."""
    standing = await news.now()
    place = Place(wish.attempt or standing.attempt, wish.first)
    ends, looks = time.monotonic() + LONGEST_SECONDS, time.monotonic() + ALLOWED_SECONDS
    while time.monotonic() < ends:
        if time.monotonic() >= looks:
            if not await may_go_on():
                return
            looks = time.monotonic() + ALLOWED_SECONDS
        part = await read_part(wish, place, standing)
        place = part.place
        if part.text:
            yield part.text.encode()
        if part.more:
            continue
        # What was known to have ended before its log was read to the end has no more of it.
        if not standing.is_open or place.attempt < standing.attempt:
            return
        standing = await news.changed(standing, min(looks, ends) - time.monotonic())
    yield f"[goes on: from={place.line}]\n".encode()


def part_of(wish: Following, place: Place, standing: Standing) -> Part:
    """The next lines; at the end of an attempt, where all are followed, the next one."""
    node = Node.objects.filter(attempt__job=wish.job, attempt__number=place.attempt, rank=wish.rank).first()
    if node is not None:
        reading = lines_from(node, place.line, words=wish.words, most=LINES_AT_ONCE, most_characters=CHARACTERS_AT_ONCE)
        behind = replace(place, line=reading.next_number)
        if reading.more or reading.lines:
            return Part("".join(shown(line, wish) for line in reading.lines), behind, more=True)
    if wish.attempt is None and place.attempt < standing.attempt:
        following = Place(place.attempt + 1, 1)
        return Part(f"[attempt {following.attempt}]\n", following, more=True)
    return Part("", place, more=False)


read_part = database_sync_to_async(part_of, thread_sensitive=False)


def shown(line: LogLine, wish: Following) -> str:
    """What is missing before a line is said in a line of its own."""
    number = f"{line.number}\t" if wish.numbers else ""
    gap = f"[… {line.left_out} bytes left out …]\n" if line.left_out else ""
    return f"{gap}{number}{plain(line.text)}\n"


def plain(text: str) -> str:
    return _ESCAPES.sub("", text)
