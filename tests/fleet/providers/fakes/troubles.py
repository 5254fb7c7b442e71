"""What can go wrong between an adapter and its provider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fleet.providers.fakes.server import Answer


@dataclass
class Trouble:
    """Strikes requests of the act `on` (None: all), from the `after`th on, `times` often (None: until the fake is reset).

    Either `refusal` is answered and nothing done (`own`: in the provider's words, so held to its description), or `happen` makes of the
    answer what arrives, None for nothing; `acts` says whether the request was carried out.
    """

    on: str | None
    refusal: Answer | None = None
    own: bool = True
    happen: Callable[[Answer], Answer | None] | None = None
    acts: bool = True
    after: int = 0
    times: int | None = None

    def strikes(self, act: str) -> bool:
        """Counts."""
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
