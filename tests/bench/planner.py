"""The planner against measurements: predicted memory, cache and speed of each row of a CSV, and how far off they are.

    python -m tests.bench.planner --measured FILE [--json]

FILE has the columns of planner_measured.csv. Rows that carry an exclude_reason are left out and counted, and so are those that a run
cannot express. Errors are in per cent of what was measured; of memory, in per cent of max(measured, 4 GiB for a card), so that toy
models do not drown the rest. "False fit": it ran out of memory and the planner said that it fits.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from planner.runs import TrainingRun
from tests.bench import planner_memory, planner_speed
from tests.bench.planner_memory import OF_ALL_GPUS, Compared
from tests.bench.planner_public import FORMULAE
from tests.bench.planner_rows import Measured, Skipped, read_measured
from tests.bench.planner_score import Score
from tests.bench.planner_shapes import CannotExpressError

SMALLEST_MEMORY = 4 * 2**30
MEMORY_KINDS = ("train_memory", "kv_cache", "infer_memory")
SPEED_KINDS = ("train_throughput", "mfu", "infer_throughput")
# Speed and utilization of a run prove that it fitted; the other kinds of one source would count it twice.
JUDGED_BY_SPEED = ("train_throughput",)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, required=True, metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print only the line of JSON")
    parser.add_argument(
        "--worst", type=int, default=0, metavar="N", help="also the N rows that are furthest off, of each kind"
    )
    options = parser.parse_args(arguments)
    rows = list(read_measured(options.measured))
    scores, worst = score_rows(rows)
    report = figures(scores, rows)
    if not options.json:
        print_table(scores)
        print_worst(worst, options.worst)
    sys.stdout.write(json.dumps(report) + "\n")
    return 0


def figures(scores: dict[str, Score], rows: Iterable[Measured | Skipped]) -> dict[str, Any]:
    """The last line: a block for each kind, how often "it fits" was wrong, and the public formulae on the rows that they know."""
    judged = sum(score.fits_judged for score in scores.values())
    wrong = sum(score.false_fits for score in scores.values())
    report: dict[str, Any] = {kind: scores[kind].figures() for kind in (*MEMORY_KINDS, *SPEED_KINDS)}
    report["kv_cache"]["tokens_given_pool_exact"] = tokens_given_pool(rows)
    report["false_fit_rate"] = round(wrong / judged, 4) if judged else None
    report["public"] = {name: public_figures(name, rows) for name in FORMULAE}
    return report


def score_rows(rows: Iterable[Measured | Skipped]) -> tuple[dict[str, Score], dict[str, list[tuple[float, str]]]]:
    """By kind, and every row's signed error with its id."""
    scores: dict[str, Score] = defaultdict(Score)
    errors: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for row in rows:
        score = scores[row.kind]
        if isinstance(row, Skipped):
            _leave_out(score, row)
            continue
        score.eligible += 1
        _judge_fit(score, row)
        result = _compare(row)
        if isinstance(result, Skipped):
            score.skipped[result.reason] += 1
            continue
        score.covered += 1
        if not row.out_of_memory:
            error = error_per_cent(row, result)
            score.errors[row.source].append(error)
            errors[row.kind].append((error, row.id))
    return scores, errors


def _leave_out(score: Score, row: Skipped) -> None:
    if row.excluded:
        score.excluded += 1
        return
    score.eligible += 1
    score.skipped[row.reason] += 1


def _compare(row: Measured) -> Compared | Skipped:
    if row.kind in MEMORY_KINDS:
        return planner_memory.predict(row)
    try:
        return Compared(planner_speed.predict_speed(row), row.value)
    except CannotExpressError as error:
        return Skipped(row.id, row.kind, row.source, str(error))


def error_per_cent(row: Measured, both: Compared) -> float:
    if row.kind not in MEMORY_KINDS:
        return 100 * (both.predicted - both.measured) / both.measured
    cards = row.gpus if row.quantity in OF_ALL_GPUS else 1
    return 100 * (both.predicted - both.measured) / max(both.measured, SMALLEST_MEMORY * cards)


def _judge_fit(score: Score, row: Measured) -> None:
    """Whether a card was said to hold what it held, or did not hold."""
    judged = row.kind in MEMORY_KINDS or row.kind in JUDGED_BY_SPEED
    # Without a word on checkpointing nobody knows what fitted.
    unknown = row.kind in JUDGED_BY_SPEED and row.cells["checkpointing"] == "unknown"
    if row.gpu is None or not judged or unknown or row.quantity == "model_states_per_gpu":
        return
    fits = planner_memory.needed_on_card(row) <= row.gpu.memory_bytes
    score.fits_judged += 1
    score.false_fits += row.out_of_memory and fits
    score.false_ooms += not row.out_of_memory and not fits


def tokens_given_pool(rows: Iterable[Measured | Skipped]) -> float | None:
    """Share of the servers that logged both pool and blocks where the blocks follow from the pool, to the last digit of the log."""
    pools: dict[str, float] = {}
    blocks: dict[str, Measured] = {}
    for row in rows:
        if isinstance(row, Measured) and row.kind == "kv_cache" and row.source != "LLMD":
            key = "|".join(
                row.cells[name] for name in ("source_address", "model", "engine_version", "max_model_len", "tp2")
            )
            if row.quantity == "kv_pool_per_gpu":
                pools[key] = row.value
            elif row.quantity == "kv_blocks":
                blocks[key] = row
    both = [(pools[key], row) for key, row in blocks.items() if key in pools]
    return round(sum(_follows(pool, row) for pool, row in both) / len(both), 4) if both else None


def _follows(pool: float, row: Measured) -> bool:
    rounding = 0.0051 * 2**30
    least, most = (planner_memory.tokens_of_measured_pool(row, pool + side) for side in (-rounding, rounding))
    return least <= 16 * row.value <= most


def public_figures(name: str, rows: Iterable[Measured | Skipped]) -> dict[str, Any]:
    """Of one public formula on the peaks of training; `ours` on exactly the rows that it knows."""
    theirs, ours = Score(), Score()
    for row in rows:
        if not _has_peak(row):
            continue
        assert isinstance(row, Measured)
        assert isinstance(row.run, TrainingRun)
        theirs.eligible += 1
        bytes_per_card = FORMULAE[name](row.run)
        own = planner_memory.predict(row)
        if bytes_per_card is None or isinstance(own, Skipped):
            continue
        theirs.covered += 1
        cards = row.gpus if row.quantity in OF_ALL_GPUS else 1
        theirs.errors[row.source].append(error_per_cent(row, Compared(bytes_per_card * cards, row.value)))
        ours.errors[row.source].append(error_per_cent(row, own))
    mine = ours.figures()
    return {
        **theirs.figures(),
        "ours": {key: mine[key] for key in ("median_ape", "p90_ape", "bias", "macro_median_ape")},
    }


def _has_peak(row: Measured | Skipped) -> bool:
    return (
        isinstance(row, Measured)
        and row.kind == "train_memory"
        and isinstance(row.run, TrainingRun)
        and row.quantity.startswith("peak")
        and not row.out_of_memory
    )


def print_table(scores: dict[str, Score]) -> None:
    columns = ("n", "coverage", "median_ape", "p90_ape", "bias", "under_predicted", "false_fits", "false_ooms")
    sys.stdout.write(f"{'':34}" + "".join(f"{column:>16}" for column in columns) + "\n")
    for kind in (*MEMORY_KINDS, *SPEED_KINDS):
        score = scores[kind]
        _print_line(kind, score.figures(), columns)
        for source in sorted(score.errors):
            _print_line(f"    {source}", score.of_source(source).figures(), columns[:1] + columns[2:6])
        for reason, count in score.skipped.most_common():
            sys.stdout.write(f"    left out {count}: {reason}\n")
        sys.stdout.write(f"    excluded by the file: {score.excluded}\n")


def _print_line(name: str, values: dict[str, float | int | None], columns: Sequence[str]) -> None:
    sys.stdout.write(f"{name:34}" + "".join(f"{'-' if values[c] is None else values[c]:>16}" for c in columns) + "\n")


def print_worst(errors: dict[str, list[tuple[float, str]]], count: int) -> None:
    for kind, rows in errors.items():
        for error, row in sorted(rows, key=lambda pair: -abs(pair[0]))[:count]:
            sys.stdout.write(f"{kind:20} {row:14} {error:+8.1f} %\n")


if __name__ == "__main__":
    raise SystemExit(main())
