"""Errors over rows: coverage, median and 90th percentile of the absolute error, bias, and how often too little was predicted."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

UNDER_PER_CENT = 5.0


@dataclass(slots=True)
class Score:
    """Signed errors in per cent by source, and what was left out. `eligible` rows carry no exclude_reason."""

    errors: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    eligible: int = 0
    covered: int = 0
    excluded: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    fits_judged: int = 0
    false_fits: int = 0
    false_ooms: int = 0

    def figures(self) -> dict[str, float | int | None]:
        """As printed: `macro_median_ape` is the mean of the sources' medians; None where nothing was predicted."""
        every = [error for errors in self.errors.values() for error in errors]
        medians = [_median(map(abs, errors)) for errors in self.errors.values() if errors]
        return {
            "n": len(every),
            "coverage": round(self.covered / self.eligible, 4) if self.eligible else None,
            "median_ape": _rounded(_median(map(abs, every))),
            "p90_ape": _rounded(percentile_90([abs(error) for error in every])),
            "bias": _rounded(statistics.fmean(every) if every else None),
            "macro_median_ape": _rounded(statistics.fmean(m for m in medians if m is not None) if medians else None),
            "under_predicted": _rounded(_share(every), 4),
            "false_fits": self.false_fits,
            "false_ooms": self.false_ooms,
            "excluded": self.excluded,
        }

    def of_source(self, source: str) -> Score:
        return Score(errors={source: self.errors[source]})


def percentile_90(errors: list[float]) -> float | None:
    """The smallest error that 90 % of the rows do not exceed."""
    if not errors:
        return None
    return sorted(errors)[-(-9 * len(errors) // 10) - 1]


def _median(errors: Iterable[float]) -> float | None:
    values = list(errors)
    return statistics.median(values) if values else None


def _share(errors: list[float]) -> float | None:
    return sum(error < -UNDER_PER_CENT for error in errors) / len(errors) if errors else None


def _rounded(value: float | None, digits: int = 2) -> float | None:
    return None if value is None else round(value, digits)
