"""What a load test is to do, and how much it may do at most. Pure.

Two ways to load a server: closed (so many requests under way at any time, a new one as one ends: what a pool of clients does) and open (so many
begin a second whatever becomes of them: what the world does). The bounds below hold for every test; none can be begun beyond them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise

MOST_STAGES = 12
# Requests under way at once, in either way.
MOST_AT_ONCE = 256
MOST_PER_SECOND = 200.0
MOST_REQUESTS = 20_000
# Of the whole test, the last answers included.
MOST_SECONDS = 900.0
MOST_PROMPT_TOKENS, MOST_ANSWER_TOKENS = 16_384, 4_096


class Loop(StrEnum):
    CLOSED = "closed"
    OPEN = "open"


class PlanProblem(ValueError):
    """`field`: of LoadPlan; `code`: a key of words.PROBLEMS; `most`: the bound."""

    def __init__(self, field: str, code: str, most: float = 0) -> None:
        super().__init__(f"{field}: {code}")
        self.field, self.code, self.most = field, code, most


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """`levels`: rising; requests at once (closed) or begun a second (open), one a stage. `request_seconds`: after which a request is given up.

    `promise_*_seconds`: what 95 of 100 requests are to keep, None = nothing was promised.
    """

    loop: Loop
    levels: tuple[float, ...]
    stage_seconds: float = 20.0
    prompt_tokens: int = 256
    answer_tokens: int = 128
    request_seconds: float = 60.0
    most_requests: int = 2_000
    promise_ttft_seconds: float | None = None
    promise_tpot_seconds: float | None = None

    @property
    def whole_seconds(self) -> float:
        """At most. Answers that are under way at the end of the last stage are waited for."""
        return self.stage_seconds * len(self.levels) + self.request_seconds

    def check(self) -> None:
        """Raises PlanProblem."""
        for field, low, high in _bounds(self):
            value = getattr(self, field)
            if not low <= value <= high:
                raise PlanProblem(field, "range", high if value > high else low)
        _check_levels(self.loop, self.levels)
        if self.whole_seconds > MOST_SECONDS:
            raise PlanProblem("stage_seconds", "too_long", MOST_SECONDS)


def _bounds(plan: LoadPlan) -> Iterator[tuple[str, float, float]]:
    yield "stage_seconds", 1, 300
    yield "prompt_tokens", 1, MOST_PROMPT_TOKENS
    yield "answer_tokens", 1, MOST_ANSWER_TOKENS
    yield "request_seconds", 1, 600
    yield "most_requests", 1, MOST_REQUESTS
    for name in ("promise_ttft_seconds", "promise_tpot_seconds"):
        if getattr(plan, name) is not None:
            yield name, 0.001, 600


def _check_levels(loop: Loop, levels: Sequence[float]) -> None:
    if not 1 <= len(levels) <= MOST_STAGES:
        raise PlanProblem("levels", "stages", MOST_STAGES)
    most = MOST_AT_ONCE if loop is Loop.CLOSED else MOST_PER_SECOND
    if not all(0 < level <= most for level in levels):
        raise PlanProblem("levels", "level", most)
    if any(later <= former for former, later in pairwise(levels)):
        raise PlanProblem("levels", "rising")
    if loop is Loop.CLOSED and any(level != int(level) for level in levels):
        raise PlanProblem("levels", "whole")


def doubling(most: int) -> tuple[float, ...]:
    """1, 2, 4 … and `most` itself: as fine as a knee can be found in a few minutes."""
    levels = [float(2**power) for power in range(most.bit_length()) if 2**power < most]
    return (*levels[-(MOST_STAGES - 1) :], float(most))
