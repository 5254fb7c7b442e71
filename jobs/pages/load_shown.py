"""A load test as pages show it: one sentence, its stages, what it suggests, and two charts over one axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from jobs.loadtest.figures import Percentiles, StageFigures
from jobs.loadtest.models import LoadStage, LoadTest
from jobs.loadtest.plan import LoadPlan, Loop
from jobs.loadtest.rows import figures_of_row, plan_of
from jobs.loadtest.words import ADVICE, PAST, because_text, error_text, why_text


@dataclass(frozen=True, slots=True)
class TimesCell:
    label: str
    text: str


@dataclass(frozen=True, slots=True)
class StageLine:
    row: LoadStage
    figures: StageFigures
    is_knee: bool

    @property
    def times(self) -> list[TimesCell]:
        found = self.figures
        return [
            TimesCell("TTFT", times_text(found.ttft)),
            TimesCell("TPOT", times_text(found.tpot)),
            TimesCell(_("Whole"), times_text(found.e2e)),
        ]

    @property
    def errors(self) -> list[tuple[str, int]]:
        return [(error_text(code), count) for code, count in self.figures.errors.items()]

    @property
    def not_answered(self) -> int:
        return self.figures.failed + self.figures.not_sent

    @property
    def kv_percent(self) -> float | None:
        share = self.row.peaks.get("kv_cache_share")
        return 100 * share if share is not None else None


@dataclass(frozen=True, slots=True)
class AdviceLine:
    label: str
    value: str
    because: str
    setting: str


class LoadLine:
    """`test`: with its stages."""

    def __init__(self, test: LoadTest) -> None:
        self.test = test
        self.plan: LoadPlan = plan_of(test)

    @cached_property
    def stages(self) -> list[StageLine]:
        return [
            StageLine(row, figures_of_row(row), row.number == self.test.knee_stage) for row in self.test.stages.all()
        ]

    @property
    def knee(self) -> StageLine | None:
        return next((line for line in self.stages if line.is_knee), None)

    @property
    def title(self) -> str:
        if self.test.is_open:
            return _("Load test under way")
        knee = self.knee
        if knee is None:
            return _("No stage of the load test was kept") if self.stages else _("Load test without a result")
        if not self.test.knee_past:
            return _("No knee up to %(level)s") % {"level": self.level_text(knee.figures.level)}
        return _("The knee is at %(level)s") % {"level": self.level_text(knee.figures.level)}

    @property
    def past(self) -> str:
        return str(PAST.get(self.test.knee_past, ""))

    @property
    def why(self) -> str:
        return why_text(self.test.why, self.test.detail) if self.test.why else ""

    @property
    def whole_seconds(self) -> float:
        return self.plan.whole_seconds

    @property
    def at_stage(self) -> int:
        return int(self.test.progress.get("stage", 0)) + 1

    @property
    def share(self) -> str:
        """Percent of the stages, as CSS writes it."""
        return f"{100 * len(self.stages) / len(self.plan.levels):.1f}"

    @property
    def ended_at(self) -> datetime | None:
        return self.test.ended_at

    def level_text(self, level: float) -> str:
        if self.plan.loop is Loop.CLOSED:
            return _("%(n)s requests at once") % {"n": f"{level:g}"}
        return _("%(n)s requests a second") % {"n": f"{level:g}"}

    @property
    def advice(self) -> list[AdviceLine]:
        return [self._advice(one) for one in self.test.advice]

    def _advice(self, one: Mapping[str, Any]) -> AdviceLine:
        value = one.get("value")
        return AdviceLine(
            str(ADVICE.get(one["code"], one["code"])),
            f"{value:g}" if value is not None else pgettext("advice", "as it is"),
            because_text(one["because"], one["values"]),
            one.get("setting", ""),
        )

    @property
    def chart_id(self) -> str:
        return f"load-{self.test.pk}"

    @property
    def chart(self) -> dict[str, Any]:
        """Over the load: tokens out a second, and the first token's p95 in ms. For js/loadtest.js."""
        knee = self.knee
        promised = self.plan.promise_ttft_seconds
        return {
            "x": [line.figures.level for line in self.stages],
            "tokens": [round(line.figures.tokens_per_second, 1) for line in self.stages],
            "ttft": [_ms(line.figures.ttft.p95) for line in self.stages],
            "knee": knee.figures.level if knee and self.test.knee_past else None,
            "promise": _ms(promised),
            "words": {
                "tokens": _("Tokens out per second"),
                "ttft": _("TTFT p95"),
                "knee": pgettext("load test", "knee"),
                "promise": pgettext("load test", "promise"),
            },
        }


def times_text(found: Percentiles) -> str:
    """All three in one unit, that of the smallest."""
    values = (found.p50, found.p95, found.p99)
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    factor, unit, digits = (1_000, "ms", 1 if known[0] < 0.1 else 0) if known[0] < 1 else (1, "s", 2)
    return " / ".join("–" if value is None else f"{value * factor:,.{digits}f}" for value in values) + f" {unit}"


def _ms(seconds: float | None) -> float | None:
    return round(seconds * 1_000, 1) if seconds is not None else None
