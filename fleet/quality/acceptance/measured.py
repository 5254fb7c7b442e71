"""The result of an agent's test, read with doubt: it is any JSON, of a machine that may be hostile. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from fleet.providers.drift import Card

MOST_GPUS = 64
# Above it a figure is no measurement of anything that exists.
MOST = 1e18


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures by the path that the protocol gives them; None where the agent could not measure one."""

    result: Mapping[str, Any]

    def number(self, part: str, name: str) -> float | None:
        inside = self.result.get(part)
        return number_in(inside, name)

    @property
    def gpu_count(self) -> int | None:
        """0: the driver says that there is none, which is something else than that it was not asked."""
        count = _mapping(self.result.get("gpu")).get("count")
        return count if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= 10_000 else None

    @property
    def gpus(self) -> Sequence[Mapping[str, Any]]:
        rows = _mapping(self.result.get("gpu")).get("gpus")
        return [row for row in rows if isinstance(row, Mapping)][:MOST_GPUS] if isinstance(rows, list) else []

    @property
    def cards(self) -> list[Card]:
        """Whole cards, as they can be held against what was rented."""
        return [
            Card(
                str(row.get("name") or ""),
                None if (size := number_in(row, "memory_total_bytes")) is None else int(size),
            )
            for row in self.gpus
        ]

    @property
    def under_load(self) -> bool:
        return _mapping(self.result.get("gpu")).get("under_load") is True

    @property
    def matrix_type(self) -> str:
        return next((str(row["matrix_type"]) for row in self.gpus if "matrix_type" in row), "")

    def least(self, name: str) -> float | None:
        """Of the cards that were measured, the one that has least."""
        values = self._of_cards(name)
        return min(values) if values else None

    def middle(self, name: str) -> float | None:
        values = self._of_cards(name)
        return median(values) if len(values) > 1 else None

    def _of_cards(self, name: str) -> list[float]:
        return [value for row in self.gpus if (value := number_in(row, name)) is not None]


def number_in(inside: object, name: str) -> float | None:
    value = _mapping(inside).get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < MOST:
        return None
    return value


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
