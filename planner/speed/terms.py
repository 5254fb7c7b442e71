"""A time is a sum of named terms, each with its formula, its source and how far off it may be; and the constants that they rest on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Constant:
    """A figure that does not follow from the shape. `spread` is the uncertainty to either side as a part of it."""

    value: float
    spread: float
    meaning: str
    source: str


@dataclass(frozen=True, slots=True)
class TimeTerm:
    """`expected` seconds between `low` and `high` that add to the whole; `hidden` seconds more run beside other terms and cost nothing."""

    key: str
    expected: float
    low: float
    high: float
    formula: str
    source: str
    hidden: float = 0.0


@dataclass(frozen=True, slots=True)
class TimeEstimate:
    """Seconds as a sum of terms."""

    terms: tuple[TimeTerm, ...]

    @property
    def expected(self) -> float:
        return sum(term.expected for term in self.terms)

    @property
    def low(self) -> float:
        return sum(term.low for term in self.terms)

    @property
    def high(self) -> float:
        return sum(term.high for term in self.terms)

    def term(self, key: str) -> TimeTerm:
        """Raises KeyError for a term that the estimate does not have."""
        return {term.key: term for term in self.terms}[key]


def time_term(key: str, seconds: float, spread: float, *, formula: str, source: str, hidden: float = 0.0) -> TimeTerm:
    """`spread`: the uncertainty to either side, as a part of the seconds; the low end divides by it, so that it stays above zero."""
    return TimeTerm(key, seconds, seconds / (1 + spread), seconds * (1 + spread), formula, source, hidden)


def paced_term(
    key: str, amount: float, pace: float, spread: float, *, unit: Literal["FLOP", "B"], formula: str, source: str
) -> TimeTerm:
    """`amount` of work at `pace` a second; the formula ends in the numbers."""
    numbers = f"{formula} = {amount:.4g} {unit} / {pace:.4g} {unit}/s"
    return time_term(key, amount / pace, spread, formula=numbers, source=source)
