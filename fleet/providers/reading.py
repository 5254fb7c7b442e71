"""Small steps that adapters of paged JSON APIs share: parts of an answer, paths, sizes, ends of lists, typed options, waiting."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote

from fleet.providers.errors import InvalidOption, Unavailable
from fleet.providers.rows import Row, number
from fleet.providers.values import gettext_noop

T = TypeVar("T")
MAX_PAGES = 1000
MIB_PER_GIB = 1024


def mapping_of(answer: Any, name: str, label: str) -> Row:
    """The object called `name`. Raises Unavailable where there is none."""
    value = answer.get(name) if isinstance(answer, dict) else None
    if not isinstance(value, dict):
        raise Unavailable(f"{label}'s answer has no {name}.")
    return value


def list_of(answer: Any, label: str) -> list[Row]:
    """An answer that is a bare list of objects. Raises Unavailable for anything else."""
    if not isinstance(answer, list) or not all(isinstance(row, dict) for row in answer):
        raise Unavailable(f"{label}'s answer is no list.")
    return answer


def path_of(*parts: object) -> str:
    """A path that its parts cannot leave, whatever an id holds."""
    return "/".join(quote(str(part), safe="") for part in parts)


def whole(value: Any) -> int | None:
    read = number(value)
    return None if read is None else int(read)


def mib(gib: Any) -> int | None:
    read = number(gib)
    return None if read is None else int(read * MIB_PER_GIB)


def utc(word: object) -> datetime | None:
    """A time of an API that documents UTC and leaves the zone out now and then. Raises ValueError for what is no time."""
    if not word:
        return None
    read = datetime.fromisoformat(str(word))
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def complete(seen: int, total: object, label: str) -> None:
    """Raises Unavailable where the provider counted more rows than its pages held."""
    if isinstance(total, int) and seen < total:
        raise Unavailable(f"{label} counts {total} rows and lists {seen}.")


def endless(label: str, name: str) -> Unavailable:
    return Unavailable(f"{label}'s list of {name} does not end.")


def required(options: Mapping[str, str], name: str) -> str:
    """A typed field. Raises InvalidOption where it is empty."""
    if not options[name].strip():
        raise InvalidOption(name, gettext_noop("Fill this in."))
    return options[name].strip()


def header_secret(options: Mapping[str, str], name: str) -> str:
    """A key that travels in a header, which holds printable ASCII and nothing else."""
    key = required(options, name)
    if not key.isascii() or not key.isprintable():
        raise InvalidOption(name, gettext_noop("A key has only letters, digits and signs. Copy it again."))
    return key


def pause(seconds: float) -> None:
    time.sleep(seconds)


def await_answer(read: Callable[[], T | None], *, tries: int, seconds: float) -> T | None:
    """What `read` gives as soon as it gives something; None after `tries` reads, `seconds` apart."""
    for attempt in range(tries):
        if attempt:
            pause(seconds)
        answer = read()
        if answer is not None:
            return answer
    return None
