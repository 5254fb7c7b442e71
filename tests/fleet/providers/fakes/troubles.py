"""What can go wrong between an adapter and its provider."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fleet.providers.fakes.server import Answer

ITEMS = re.compile(rb"<item>.*</item>", re.DOTALL)


@dataclass
class Trouble:
    """Strikes requests of the act `on` (None: all), from the `after`th on, `times` often (None: until the fake is reset).

    Either `refusal` is answered and nothing done (`own`: in the provider's words, so held to its description), or `happen` makes of the
    answer what arrives, None for nothing; `acts` says whether the request was carried out. `following`: only what comes after that act.
    """

    on: str | None
    refusal: Answer | None = None
    own: bool = True
    happen: Callable[[Answer], Answer | None] | None = None
    acts: bool = True
    after: int = 0
    times: int | None = None
    following: str = ""

    def strikes(self, act: str) -> bool:
        """Counts."""
        if self.following:
            self.following = "" if act == self.following else self.following
            return False
        if self.on not in {None, act} or self.times == 0:
            return False
        if self.after:
            self.after -= 1
            return False
        self.times = None if self.times is None else self.times - 1
        return True


def cut(whole: Answer) -> Answer:
    """The line breaks in the middle of the body."""
    return Answer(whole.status, whole.body, whole.headers, sent=len(whole.body) // 2)


def halve(whole: Answer) -> Answer:
    """Half a body with a length that fits, as some proxies deliver it."""
    return Answer(whole.status, whole.body[: len(whole.body) // 2], whole.headers)


def empty(whole: Answer) -> Answer:
    """The same form, with nothing in its lists, which in XML hold items."""
    if b"<item>" in whole.body:
        return Answer(whole.status, ITEMS.sub(b"", whole.body), whole.headers)
    return Answer(whole.status, json.dumps(emptied(json.loads(whole.body))).encode(), whole.headers)


def emptied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: emptied(inner) for name, inner in value.items()}
    return [] if isinstance(value, list) else value
