"""Messages that a wrong stack ends in, each with the expression that finds it in a log."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from planner.catalogue.rows import DATA, CatalogueError, Row, read_rows


@dataclass(frozen=True, slots=True)
class Symptom:
    """`condition` says, in terms of the tables, when it happens; named groups of `pattern` are values for its sentences."""

    id: str
    layer: str
    pattern: re.Pattern[str]
    example: str
    condition: str
    addresses: tuple[str, ...]
    confidence: str


@cache
def symptoms() -> Mapping[str, Symptom]:
    """By id. Raises CatalogueError."""
    found = read_symptoms()
    check_patterns(found)
    return {symptom.id: symptom for symptom in found}


def read_symptoms(folder: Path = DATA) -> list[Symptom]:
    return [_symptom(row) for row in read_rows("symptoms.csv", folder=folder)]


def check_patterns(found: Sequence[Symptom]) -> None:
    """Each pattern matches its own example and no other: a pasted message must not have two causes. Raises CatalogueError."""
    for symptom in found:
        matched = [other.id for other in found if symptom.pattern.search(other.example)]
        if matched != [symptom.id]:
            raise CatalogueError(f"symptoms.csv, {symptom.id}: its pattern matches the examples of {matched}")


def _symptom(row: Row) -> Symptom:
    try:
        pattern = re.compile(row.text("pattern"))
    except re.error:
        raise row.fault("pattern", "regular expression") from None
    return Symptom(
        id=row.text("id"),
        layer=row.text("layer"),
        pattern=pattern,
        example=row.text("example"),
        condition=row.text("condition"),
        addresses=tuple(row.text("address").split(" ; ")),
        confidence=row.text("confidence"),
    )
