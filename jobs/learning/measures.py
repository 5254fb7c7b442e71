"""What of a run is held against its plan, and why it may not be. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any

# Of a column: 10 places before and after what anybody measures.
PLACES, MOST = Decimal("1e-10"), Decimal("1e18")


class Measure(StrEnum):
    """Named as the planner's figures are (Job.predicted): bytes of the fullest GPU, seconds, tokens a second of all GPUs, hours, money."""

    MEMORY = "memory_bytes"
    STEP = "seconds_per_step"
    TOKENS = "tokens_per_second"
    HOURS = "hours"
    COST = "cost"
    COST_PER_HOUR = "cost_per_hour"


MONEY = frozenset({Measure.COST, Measure.COST_PER_HOUR})


class Missing(StrEnum):
    """Why a figure cannot be held against its prediction; NOTHING: it can."""

    NOTHING = ""
    NOT_PLANNED = "not_planned"
    NOT_RUN = "not_run"
    NOT_MEASURED = "not_measured"
    GAPS = "gaps"
    SHARED = "shared"
    NOT_TOLD = "not_told"
    TOO_SHORT = "too_short"
    RUNS_YET = "runs_yet"
    NOT_FINISHED = "not_finished"
    OTHER_LENGTH = "other_length"
    NO_PRICE = "no_price"
    NO_RATE = "no_rate"


@dataclass(frozen=True, slots=True)
class Reading:
    """`value` may be known and still not be comparable, as `missing` says."""

    value: Decimal | None = None
    missing: Missing = Missing.NOTHING


@dataclass(frozen=True, slots=True)
class Compared:
    """One line of plan against measured."""

    measure: Measure
    predicted: Decimal | None
    measured: Decimal | None
    missing: Missing = Missing.NOTHING
    currency: str = ""

    @property
    def ratio(self) -> Decimal | None:
        """Measured by predicted, where they can be compared."""
        if self.missing or self.measured is None or not self.predicted:
            return None
        return self.measured / self.predicted


def number(value: object) -> Decimal | None:
    """A figure that fits a column; what is none, as a text or infinity, is not known."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found.quantize(PLACES) if found.is_finite() and abs(found) < MOST else None


def compared_with(predicted: Mapping[str, Any], readings: Mapping[Measure, Reading]) -> list[Compared]:
    """A line for each measure that either side has a figure of."""
    currency = str(predicted.get("currency") or "")
    found = []
    for measure, reading in readings.items():
        planned = number(predicted.get(measure.value))
        if planned is None and reading.value is None:
            continue
        missing = reading.missing or (Missing.NOT_PLANNED if not planned else Missing.NOTHING)
        found.append(Compared(measure, planned, reading.value, missing, currency if measure in MONEY else ""))
    return found


_SIZE = re.compile(r"[-_. ]*\d+(\.\d+)?(x\d+(\.\d+)?)?[bm](?![a-z0-9]).*")


def family_of(model: str) -> str:
    """A model's name without its maker and from its size on: "meta-llama/Llama-3.1-8B-Instruct" is of "llama-3.1"."""
    name = model.rpartition("/")[2].strip().lower()
    return (_SIZE.sub("", name) or name)[:80]
