"""Adding up the rows of a query to what `spend` answers, without losing a digit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, localcontext

from fleet.costs.spend.converting import Stretch
from fleet.costs.spend.figures import By, Spend, Sum, UsedRate
from fleet.costs.spend.reading import Line
from fleet.states import GpuState

# 14 digits of an amount, 24 of an inverse rate, and room before the point: sums in it are exact in any order.
EXACT = Context(prec=72)
NOTHING = Decimal(0)


def add_up(amounts: Sequence[Decimal]) -> Decimal:
    """Exactly, also where amounts were converted: Python's own context ends at 28 digits."""
    with localcontext(EXACT):
        return sum(amounts, NOTHING)


@dataclass(slots=True)
class Pile:
    """A `Sum` in the making."""

    amounts: dict[str, Decimal] = field(default_factory=dict)
    states: dict[GpuState, Decimal] = field(default_factory=lambda: dict.fromkeys(GpuState, NOTHING))
    gpu_seconds: dict[GpuState, float] = field(default_factory=dict)
    unpriced_seconds: float = 0.0
    unconverted: dict[str, Decimal] = field(default_factory=dict)

    def add(self, line: Line, into: str) -> None:
        charged = sum(line.states.values(), NOTHING)
        self.amounts[line.currency] = self.amounts.get(line.currency, NOTHING) + charged
        converted = line.states if line.currency == into else line.converted
        if converted is None:
            self.unconverted[line.currency] = self.unconverted.get(line.currency, NOTHING) + charged
        else:
            for state, amount in converted.items():
                self.states[state] += amount
        for state, seconds in line.gpu_seconds.items():
            self.gpu_seconds[state] = self.gpu_seconds.get(state, 0.0) + seconds
        self.unpriced_seconds += line.unpriced_seconds

    def sum(self) -> Sum:
        return Sum(
            self.amounts,
            sum(self.states.values(), NOTHING),
            self.states,
            self.gpu_seconds,
            self.unpriced_seconds,
            {currency: amount for currency, amount in self.unconverted.items() if amount},
        )


class Tally:
    def __init__(self, currency: str, by: tuple[By, ...]) -> None:
        self.currency = currency
        self.by = by
        self.piles: dict[tuple[object, ...], Pile] = {}
        self.all = Pile()
        self.numbers: set[int] = set()

    def add(self, line: Line) -> None:
        with localcontext(EXACT):
            self.all.add(line, self.currency)
            for key, part in self._parts(line):
                self.piles.setdefault(key, Pile()).add(part, self.currency)
        if line.currency != self.currency and line.first_rate is not None and line.last_rate is not None:
            self.numbers.update(range(line.first_rate, line.last_rate + 1))

    def _parts(self, line: Line) -> Iterator[tuple[tuple[object, ...], Line]]:
        if By.STATE not in self.by:
            yield line.key, line
            return
        place = self.by.index(By.STATE)
        for state in GpuState:
            part = part_of(line, state)
            if part.states[state] or part.gpu_seconds or part.unpriced_seconds:
                yield (*line.key[:place], state, *line.key[place:]), part

    def spend(self, rates: Sequence[Stretch]) -> Spend:
        with localcontext(EXACT):
            rows = {key: pile.sum() for key, pile in self.piles.items()}
            whole = self.all.sum()
        ordered = dict(sorted(rows.items(), key=lambda row: (-row[1].total, [str(value) for value in row[0]])))
        used: list[UsedRate] = [rates[number].used for number in sorted(self.numbers)]
        return Spend(self.currency, self.by, ordered, whole, tuple(used))


def part_of(line: Line, state: GpuState) -> Line:
    """What of it was spent in one state. Time without a price is as little known as time without telemetry."""
    seconds = line.gpu_seconds.get(state, 0.0)
    return Line(
        line.key,
        line.currency,
        {state: line.states[state]},
        None if line.converted is None else {state: line.converted[state]},
        {state: seconds} if seconds else {},
        line.unpriced_seconds if state is GpuState.UNKNOWN else 0.0,
        line.first_rate,
        line.last_rate,
    )
