"""How well the planner's speed does on what its constants have not seen.

    python -m tests.bench.planner_refit --measured FILE [--by source|model] [--side training|serving]

Leaves out one source, or the models one fifth at a time, sets every free constant anew on the rest (from what one would take it for
without any row), and measures on what was left out. Beside it: the constants as shipped. Takes minutes.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import fmean, median
from zlib import crc32

from tests.bench.planner_knobs import Knob, Side, knobs
from tests.bench.planner_rows import Measured, Skipped, read_measured
from tests.bench.planner_speed import predict_speed

KINDS: dict[Side, tuple[str, ...]] = {
    "training": ("train_throughput", "mfu"),
    "serving": ("infer_throughput",),
}
FOLDS = 5
# Two tables of the same runs.
SAME_RUNS = {"LLMF-T": "LLMF", "LLMF-M": "LLMF"}
# Rows of one source beyond these add time and no news to a fit.
MOST_OF_A_SOURCE = 60
STEPS = (1.25, 0.8, 1.08, 0.925, 1.02, 0.98)
ROUNDS = 3
# Natural logarithm: a row that is off by more is an outlier and weighs no more.
OUTLIER = 0.5


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, required=True, metavar="FILE")
    parser.add_argument("--by", choices=("source", "model"), default="source")
    parser.add_argument("--side", choices=("training", "serving"))
    options = parser.parse_args(arguments)
    group_of = _source if options.by == "source" else _fold
    for side in (options.side,) if options.side else KINDS:
        rows = [row for row in read_measured(options.measured) if row.kind in KINDS[side]]
        _report(side, [row for row in rows if not isinstance(row, Skipped)], group_of)
    return 0


def _source(row: Measured) -> str:
    return SAME_RUNS.get(row.source, row.source)


def _fold(row: Measured) -> str:
    """All rows of a model in one, whatever its source."""
    return f"models {crc32(row.run.shape.name.encode()) % FOLDS}"


def _report(side: Side, rows: list[Measured], group_of: Callable[[Measured], str]) -> None:
    free = [knob for knob in knobs() if knob.side == side]
    shipped = [knob.read() for knob in free]
    sys.stdout.write(f"{side}: {len(free)} free constants, {len(rows)} rows\n")
    for group in sorted({group_of(row) for row in rows}):
        inside = [row for row in rows if group_of(row) == group]
        before = _errors(inside)
        fit(free, _sample([row for row in rows if group_of(row) != group]))
        after = _errors(inside)
        sys.stdout.write(
            f"  without {group:10} {len(inside):4} rows: {_median(before)} as shipped, {_median(after)} unseen\n"
        )
        sys.stdout.flush()
        _write(free, shipped)


def _median(errors: Iterable[float]) -> str:
    return f"{median(map(abs, errors)):5.1f} %"


def _errors(rows: Iterable[Measured]) -> list[float]:
    return [100 * (predict_speed(row) / row.value - 1) for row in rows]


def _sample(rows: list[Measured]) -> list[Measured]:
    """Every n-th row of the sources that have very many."""
    by_source = defaultdict(list)
    for row in rows:
        by_source[row.source].append(row)
    return [row for of_source in by_source.values() for row in of_source[:: max(1, len(of_source) // MOST_OF_A_SOURCE)]]


def fit(free: list[Knob], rows: list[Measured]) -> None:
    """Coordinate descent from the priors; leaves the constants where it ends."""
    _write(free, [knob.prior for knob in free])
    least = loss(rows)
    for _ in range(ROUNDS):
        for knob in free:
            least = _improve(knob, rows, least)


def _improve(knob: Knob, rows: list[Measured], least: float) -> float:
    for step in STEPS:
        before = knob.read()
        knob.write(before * step)
        while (now := loss(rows)) < least - 1e-6:
            least, before = now, knob.read()
            knob.write(before * step)
        knob.write(before)
    return least


def loss(rows: Iterable[Measured]) -> float:
    """Mean over the sources of the mean distance of the logarithms, outliers cut."""
    by_source = defaultdict(list)
    for row in rows:
        by_source[row.source].append(min(OUTLIER, abs(math.log(predict_speed(row) / row.value))))
    return fmean(map(fmean, by_source.values()))


def _write(free: list[Knob], values: Iterable[float]) -> None:
    for knob, value in zip(free, values, strict=True):
        knob.write(value)


if __name__ == "__main__":
    sys.exit(main())
