"""The text format of Prometheus, version 0.0.4, written family by family.

prometheus_client takes 20 µs a series, and a fleet of 10,000 GPUs has 376,000 of them (docs/performance.md); labels are escaped once for each
GPU here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
# Lines to a piece: about 128 KiB.
PIECE_LINES = 500

Number = float | Decimal
# Labels as they stand on the page, braces included, and the value.
Point = tuple[str, Number]


@dataclass(frozen=True, slots=True)
class Family:
    """Series of one name. `kind` is gauge or counter; `points` are read once."""

    name: str
    kind: str
    description: str
    points: Iterable[Point]


def pieces(families: Iterable[Family]) -> Iterator[bytes]:
    """The page in pieces. A family without series is left out."""
    lines: list[str] = []
    for family in families:
        for line in _lines(family):
            lines.append(line)
            if len(lines) >= PIECE_LINES:
                yield "".join(lines).encode()
                lines.clear()
    if lines:
        yield "".join(lines).encode()


def _lines(family: Family) -> Iterator[str]:
    head = f"# HELP {family.name} {family.description}\n# TYPE {family.name} {family.kind}\n"
    for labels, value in family.points:
        yield f"{head}{family.name}{labels} {number(value)}\n"
        head = ""


def label_set(labels: Mapping[str, str]) -> str:
    """Without the empty ones, which mean the same as absent ones."""
    inside = ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items() if value)
    return f"{{{inside}}}" if inside else ""


def with_label(labels: str, name: str, value: str) -> str:
    """`labels` is not empty."""
    return f'{labels[:-1]},{name}="{escaped(value)}"}}'


def escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def number(value: Number) -> str:
    """Money is written from its decimal digits; a float stands for itself."""
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1 << 53 else repr(float(value))
