"""What a run has told of itself, as rows of its chart: loss, step time, tokens, learning rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, timedelta
from itertools import pairwise
from statistics import fmean
from typing import Any

from django.db.models import Avg, FloatField, Max, Q, Value
from django.db.models.functions import Cast, Extract, Floor
from django.utils.translation import gettext as _

from jobs.book.models import Attempt
from jobs.metrics.models import JobPoint
from jobs.pages.charts.rows import Line, Row, Window, broken
from jobs.pages.summary import SLOW_RATIO, large_text, seconds_text

NAMES = ("loss", "eval_loss", "learning_rate", "seconds_per_step", "tokens_per_second", "tokens_per_gpu")
# Beyond it lie infinity and, to PostgreSQL, what is no number.
FINITE = 1e300
# So much of the end of a line says how it goes now.
NOW_SHARE = 0.1
Points = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Told:
    """Means of each bucket by name; moments are seconds since the epoch."""

    means: Mapping[str, Points]
    width_seconds: float

    def of(self, name: str) -> Points:
        return self.means.get(name, [])


def told_by(attempt: Attempt, window: Window, shift: timedelta = timedelta(0)) -> Told:
    """`shift`: added to the times of a run that is laid over another."""
    rows = JobPoint.objects.filter(attempt=attempt, at__gte=window.start - shift, at__lt=window.end - shift)
    seconds = Cast(Extract("at", "epoch", tzinfo=UTC), FloatField())
    means = {f"mean_{name}": Avg(name, filter=Q(**{f"{name}__gt": -FINITE, f"{name}__lt": FINITE})) for name in NAMES}
    read: Iterable[Mapping[str, Any]] = (
        rows.annotate(bucket=Floor(seconds / Value(window.width_seconds)))
        .values("bucket")
        .annotate(last=Max("at"), newest_step=Max("step"), **means)
        .order_by("bucket")
    )
    found: dict[str, Points] = {name: [] for name in (*NAMES, "step")}
    for row in read:
        at = (row["last"] + shift).timestamp()
        for name in NAMES:
            if (value := row[f"mean_{name}"]) is not None:
                found[name].append((at, value))
        if row["newest_step"] is not None:
            found["step"].append((at, float(row["newest_step"])))
    if not found["seconds_per_step"]:
        found["seconds_per_step"] = _step_times(found["step"])
    return Told(found, window.width_seconds)


def _step_times(steps: Points) -> Points:
    """Of the wall clock, where the trainer does not say it."""
    return [
        (at, (at - before) / (step - earlier)) for (before, earlier), (at, step) in pairwise(steps) if step > earlier
    ]


@dataclass(frozen=True, slots=True)
class Kind:
    """A row of one figure."""

    name: str
    title: str
    text: Callable[[float], str]
    unit: str = ""
    less_is_better: bool = False


def told_rows(told: Told, predicted: Mapping[str, float], other: tuple[str, Told] | None) -> Iterator[Row]:
    if loss := _lines(told, other, (("loss", _("loss"), "solid"), ("eval_loss", _("evaluated"), "dot"))):
        low = min(value for line in loss for _at, value in line.points if value is not None)
        figure = _loss_figure(told, low)
        yield Row("loss", _("Loss"), loss, loss_text, _("told by the run"), from_zero=low <= 0, figure=figure)
    kinds = (
        Kind("seconds_per_step", _("Step time"), seconds_text, " s", less_is_better=True),
        Kind("tokens_per_second", _("Tokens per second"), large_text),
        Kind("tokens_per_gpu", _("Tokens per second of a GPU"), large_text),
        Kind("learning_rate", _("Learning rate"), loss_text),
    )
    for kind in kinds:
        if lines := _lines(told, other, ((kind.name, kind.title, "solid"),)):
            yield _row(kind, lines, _now(told.of(kind.name)), predicted.get(kind.name))


def _lines(told: Told, other: tuple[str, Told] | None, names: Sequence[tuple[str, str, str]]) -> list[Line]:
    """Of this run, and the first of them of the other one."""
    lines = [
        Line(title, broken(points, told.width_seconds), dash)
        for name, title, dash in names
        if (points := told.of(name))
    ]
    if other is not None and (points := other[1].of(names[0][0])):
        lines.append(Line(other[0], broken(points, told.width_seconds), other=True))
    return lines


def _row(kind: Kind, lines: list[Line], now: float | None, plan: float | None) -> Row:
    slow = bool(plan and now and (now > SLOW_RATIO * plan if kind.less_is_better else now * SLOW_RATIO < plan))
    return Row(
        kind.name,
        kind.title,
        lines,
        kind.text,
        _("told by the run"),
        kind.unit,
        plan=plan,
        plan_text=_("plan %(figure)s") % {"figure": f"{kind.text(plan)}{kind.unit}"} if plan else "",
        slow=slow,
        large=kind.text is large_text,
        figure=f"{kind.text(now)}{kind.unit}" if now is not None else "",
    )


def _now(points: Points) -> float | None:
    return fmean(value for _at, value in points[-max(1, int(NOW_SHARE * len(points))) :]) if points else None


def loss_text(value: float) -> str:
    return f"{value:.4g}"


def _loss_figure(told: Told, low: float) -> str:
    newest = told.of("loss")[-1:] or told.of("eval_loss")[-1:]
    said = loss_text(newest[0][1]) if newest else ""
    return said if low <= 0 or not said else _("%(loss)s, axis not from zero") % {"loss": said}
