"""An estimate is a sum of named terms, each with its formula, its source and how far off it may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

# What a number of bytes counts: what tensors hold, what the framework's allocator took from the driver, what the driver shows for the card.
Counter = Literal["allocated", "reserved", "device"]


@dataclass(frozen=True, slots=True)
class Term:
    """`expected` in bytes per GPU, between `low` and `high`. `formula` is the expression with its symbols; `source` where it comes from."""

    key: str
    expected: float
    low: float
    high: float
    formula: str
    source: str
    # The counter that this term first shows in: what only the driver sees is not in "allocated".
    counter: Counter = "allocated"

    @classmethod
    def exact(cls, key: str, amount: float, *, formula: str, source: str, counter: Counter = "allocated") -> Term:
        return cls(key, amount, amount, amount, formula, source, counter)

    @classmethod
    def within(
        cls, key: str, amount: float, share: float, *, formula: str, source: str, counter: Counter = "allocated"
    ) -> Term:
        """`share`: the uncertainty to either side, as a part of the amount."""
        return cls(key, amount, amount * (1 - share), amount * (1 + share), formula, source, counter)


_COUNTERS: tuple[Counter, ...] = ("allocated", "reserved", "device")


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes of the fullest GPU at the worst moment, term by term."""

    terms: tuple[Term, ...]

    def up_to(self, counter: Counter) -> Sequence[Term]:
        """The terms that `counter` sees."""
        seen = _COUNTERS[: _COUNTERS.index(counter) + 1]
        return [term for term in self.terms if term.counter in seen]

    def expected(self, counter: Counter = "device") -> float:
        return sum(term.expected for term in self.up_to(counter))

    def low(self, counter: Counter = "device") -> float:
        return sum(term.low for term in self.up_to(counter))

    def high(self, counter: Counter = "device") -> float:
        return sum(term.high for term in self.up_to(counter))
