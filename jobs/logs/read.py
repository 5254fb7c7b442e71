"""Reading stored logs: their end, by a word, and as a whole. Each reads as few chunks as it can and never all of a log at once."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import F

from jobs.book.models import Node
from jobs.logs.models import LogChunk
from jobs.logs.part import LONGEST_LINE


@dataclass(frozen=True, slots=True)
class LogLine:
    """`left_out`: bytes that are missing before it, 0 = none."""

    number: int
    text: str
    left_out: int = 0


def lines_of(chunk: LogChunk) -> list[LogLine]:
    """A progress bar that writes over itself is one line: its last state."""
    texts = text_of(chunk).removesuffix("\n").split("\n")
    return [
        LogLine(
            chunk.first_line + place,
            text.rsplit("\r", 1)[-1] if text.strip("\r") else "",
            chunk.left_out_bytes if place == 0 else 0,
        )
        for place, text in enumerate(texts)
    ]


def text_of(chunk: LogChunk) -> str:
    return zlib.decompress(bytes(chunk.data)).decode("utf-8", "replace")


def last_lines(node: Node, most: int = 200) -> list[LogLine]:
    found: list[LogLine] = []
    for chunk in LogChunk.objects.filter(node=node).order_by("-offset").iterator(chunk_size=4):
        found = lines_of(chunk) + found
        if len(found) >= most:
            break
    return found[-most:]


@dataclass(frozen=True, slots=True)
class Reading:
    """`next_number`: of the line with which to go on; `more`: whether anything of what is stored lies behind it."""

    lines: list[LogLine]
    next_number: int
    more: bool


def lines_from(
    node: Node, number: int, *, words: str = "", most: int, most_characters: int = 1_000_000, chunks: int = 16
) -> Reading:
    """Lines from a number on, in order; with `words`, those that hold them, without regard to case. Looks at so many chunks and no further."""
    behind = LogChunk.objects.filter(node=node, first_line__gt=number - F("lines")).order_by("offset")
    wanted, found, characters = words.casefold(), list[LogLine](), 0
    for chunk in behind[:chunks].iterator(chunk_size=2):
        for line in lines_of(chunk):
            if line.number < number or wanted not in line.text[:LONGEST_LINE].casefold():
                continue
            if found and (len(found) == most or characters + len(line.text) > most_characters):
                return Reading(found, line.number, more=True)
            found.append(line)
            characters += len(line.text)
        number = max(number, chunk.first_line + chunk.lines)
    return Reading(found, number, more=number <= line_count(node))


def find_lines(node: Node, words: str, *, most: int = 200) -> tuple[list[LogLine], bool]:
    """The newest lines that hold these words, without regard to case, in the order of the log; and whether there are more."""
    wanted, found = words.casefold(), list[LogLine]()
    for chunk in LogChunk.objects.filter(node=node).order_by("-offset").iterator(chunk_size=4):
        hits = [line for line in lines_of(chunk) if wanted in line.text[:LONGEST_LINE].casefold()]
        found = hits + found
        if len(found) > most:
            return found[-most:], True
    return found, False


def whole_log(node: Node) -> Iterator[bytes]:
    """As it was written, chunk by chunk; what is missing is said in its place."""
    for chunk in LogChunk.objects.filter(node=node).order_by("offset").iterator(chunk_size=4):
        if chunk.left_out_bytes:
            yield f"[… {chunk.left_out_bytes} bytes left out …]\n".encode()
        yield zlib.decompress(bytes(chunk.data))


def line_count(node: Node) -> int:
    last = LogChunk.objects.filter(node=node).order_by("-offset").values_list("first_line", "lines").first()
    return last[0] + last[1] - 1 if last else 0
