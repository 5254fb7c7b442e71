"""How far off plans were on a team's own runs: the median of measured by predicted over jobs that are alike, with how far they lie apart. Pure.

A median and quartiles, not a mean: one run on a broken machine says nothing of the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median, quantiles

from jobs.learning.measures import Measure

# From so many jobs on, fewer features in common need not be looked at.
ENOUGH = 3
# What runs have in common, the nearest first. Work, method and GPU always.
LEVELS: tuple[tuple[str, ...], ...] = (("family", "launcher"), ("family",), ("launcher",), ())


@dataclass(frozen=True, slots=True)
class Ratio:
    """Of one job. `features`: family, launcher; of jobs of one work, method and GPU."""

    measure: Measure
    value: Decimal
    features: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Correction:
    """`ratio`: the median; a quarter of the jobs lies below `low`, and one above `high`. `alike`: what they have in common beside method and GPU."""

    measure: Measure
    ratio: Decimal
    low: Decimal
    high: Decimal
    count: int
    alike: tuple[str, ...]

    @property
    def is_thin(self) -> bool:
        return self.count < ENOUGH

    def corrected(self, predicted: Decimal) -> Decimal:
        return predicted * self.ratio


def corrections(ratios: Iterable[Ratio], wanted: Mapping[str, str]) -> dict[Measure, Correction]:
    """`wanted`: the features of the run to come; one that is "" is not asked for. By measure, in its order; none without a job."""
    known = list(ratios)
    found = {}
    for measure in Measure:
        of_measure = [one for one in known if one.measure is measure]
        made = [_correction(measure, of_measure, wanted, level) for level in levels(wanted)]
        some = [one for one in made if one is not None]
        best = next((one for one in some if not one.is_thin), None) or max(
            some, key=lambda one: one.count, default=None
        )
        if best is not None:
            found[measure] = best
    return found


def levels(wanted: Mapping[str, str]) -> list[tuple[str, ...]]:
    return [level for level in LEVELS if all(wanted.get(name) for name in level)]


def _correction(
    measure: Measure, ratios: Sequence[Ratio], wanted: Mapping[str, str], level: tuple[str, ...]
) -> Correction | None:
    values = [one.value for one in ratios if all(one.features.get(name) == wanted[name] for name in level)]
    return summed_up(measure, values, level) if values else None


def summed_up(measure: Measure, values: Sequence[Decimal], alike: tuple[str, ...] = ()) -> Correction:
    low, _middle, high = quantiles(values, n=4, method="inclusive") if len(values) > 1 else (values[0],) * 3
    return Correction(measure, median(values), low, high, len(values), alike)
