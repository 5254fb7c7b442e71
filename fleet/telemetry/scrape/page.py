"""The text that an exporter serves, parsed: pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

Labels = Mapping[str, str]
Point = tuple[Labels, float]

# A page with more series of ours than this is not one machine's.
MAX_SERIES = 20_000

# DCGM's values for "none" (dcgm_structs.h: blank, not found, not supported, not permitted), of its 32-bit, double and 64-bit fields.
_BLANKS = frozenset(float(base + offset) for base in (0x7FFFFFF0, 1 << 47, 0x7FFFFFFFFFFFFFF0) for offset in range(4))


class NotMetricsError(ValueError):
    """The text is no exposition of metrics at all."""


@dataclass(slots=True)
class Page:
    """Series by name. `kinds`: counter, gauge or unknown by name. `bad_lines`: lines that could not be read."""

    series: dict[str, list[Point]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    bad_lines: int = 0

    def __contains__(self, name: str) -> bool:
        return name in self.series

    def points(self, name: str) -> list[Point]:
        """Without those that stand for no value: NaN, and DCGM's blanks."""
        found = self.series.get(name, ())
        return [(labels, value) for labels, value in found if value == value and value not in _BLANKS]  # noqa: PLR0124 - NaN

    def value(self, name: str) -> float | None:
        points = self.points(name)
        return points[0][1] if points else None

    def by_label(self, name: str, label: str) -> dict[str, float]:
        return {labels[label]: value for labels, value in self.points(name) if label in labels}


def wanted_lines(text: str, wanted: Collection[str]) -> Iterator[str]:
    """The lines of `wanted` names and their types: an exporter serves several times more than is read here."""
    for line in text.splitlines():
        if line.startswith("#"):
            if line.startswith("# TYPE ") and line[7:].partition(" ")[0] in wanted:
                yield line
        elif line.partition("{")[0].partition(" ")[0] in wanted:
            yield line


def parse_page(text: str, wanted: Collection[str]) -> Page:
    """Raises NotMetricsError where not one line of wanted names can be read although there are some, and for far too many."""
    lines = list(wanted_lines(text, wanted))
    if len(lines) > MAX_SERIES:
        raise NotMetricsError(f"more than {MAX_SERIES} series")
    page = Page()
    try:
        _add(page, text_string_to_metric_families("\n".join(lines) + "\n"), wanted)
    except ValueError:
        page = _parse_one_by_one(lines, wanted)
    return page


def _parse_one_by_one(lines: Iterable[str], wanted: Collection[str]) -> Page:
    """One bad line must not take the page along."""
    page = Page()
    kinds: dict[str, str] = {}
    for line in lines:
        if line.startswith("#"):
            name, _, kind = line[7:].partition(" ")
            kinds[name] = kind.strip()
            continue
        try:
            _add(page, text_string_to_metric_families(line + "\n"), wanted)
        except ValueError:
            page.bad_lines += 1
    if page.bad_lines and not page.series:
        raise NotMetricsError("no line can be read")
    page.kinds.update(kinds)
    return page


def _add(page: Page, families: Iterable[Metric], wanted: Collection[str]) -> None:
    for family in families:
        for sample in family.samples:
            # The parser calls every series of a counter name_total, DCGM does not.
            name = sample.name if sample.name in wanted else family.name
            page.series.setdefault(name, []).append((sample.labels, float(sample.value)))
            page.kinds[name] = family.type
