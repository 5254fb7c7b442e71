"""What measures, their figures and what they lack are called, in the reader's language."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from fleet.formats import bytes_text, duration_text, money_text, number_text
from jobs.learning.measures import Measure, Missing

Words = Mapping[str, str | Promise]
MEASURES: Words = {
    Measure.MEMORY: gettext_lazy("Memory per GPU, peak"),
    Measure.STEP: gettext_lazy("Step time"),
    Measure.TOKENS: pgettext_lazy("rate", "Tokens"),
    Measure.HOURS: gettext_lazy("Whole run, hours"),
    Measure.COST: gettext_lazy("Whole run, cost"),
    Measure.COST_PER_HOUR: gettext_lazy("Cost of an hour"),
}
MISSING: Words = {
    Missing.NOT_PLANNED: gettext_lazy("the plan does not say"),
    Missing.NOT_RUN: gettext_lazy("it never ran"),
    Missing.NOT_MEASURED: gettext_lazy("no telemetry of its GPUs"),
    Missing.GAPS: gettext_lazy("telemetry of less than half of the time: the peak may lie in a gap"),
    Missing.SHARED: gettext_lazy("another job ran on the machine at the same time"),
    Missing.NOT_TOLD: gettext_lazy("the run tells no steps"),
    Missing.TOO_SHORT: gettext_lazy("too few steps to tell"),
    Missing.RUNS_YET: gettext_lazy("it runs yet"),
    Missing.NOT_FINISHED: gettext_lazy("it did not end well"),
    Missing.OTHER_LENGTH: gettext_lazy("it took another number of steps than planned"),
    Missing.NO_PRICE: gettext_lazy("some of its time is at a price that nobody told"),
    Missing.NO_RATE: gettext_lazy("no exchange rate to the plan's currency"),
}
# What runs have in common beside the method and the GPU (corrections.LEVELS).
ALIKE: Mapping[tuple[str, ...], str | Promise] = {
    ("family", "launcher"): gettext_lazy("same models and launcher"),
    ("family",): gettext_lazy("same models, any launcher"),
    ("launcher",): gettext_lazy("other models, same launcher"),
    (): gettext_lazy("other models, any launcher"),
}
# Less than this apart, plan and run are the same for a person.
SAME = Decimal("0.03")


def measure_text(measure: Measure) -> str:
    return str(MEASURES[measure])


def missing_text(missing: Missing) -> str:
    return str(MISSING[missing]) if missing else ""


def value_text(measure: Measure, value: Decimal | None, currency: str = "") -> str:
    """Nothing where it is not known."""
    if value is None:
        return ""
    match measure:
        case Measure.MEMORY:
            return bytes_text(float(value))
        case Measure.STEP:
            return f"{value:.3g} s" if value < 1000 else f"{value:,.0f} s"
        case Measure.TOKENS:
            return _("%(n)s/s") % {"n": number_text(float(value))}
        case Measure.HOURS:
            return duration_text(float(value) * 3600)
    money = money_text(value, currency or "USD")
    return _("%(money)s/h") % {"money": money} if measure is Measure.COST_PER_HOUR else money


def ratio_text(ratio: Decimal) -> str:
    return f"{ratio:.2f} ×" if ratio < 10 else f"{ratio:,.0f} ×"


def against_text(ratio: Decimal) -> str:
    """How a run was beside its plan, in words."""
    if abs(ratio - 1) < SAME:
        return _("as planned")
    if ratio >= 2:
        return _("%(n)s times the plan") % {"n": f"{ratio:,.1f}"}
    percent = f"{abs(ratio - 1) * 100:.0f}"
    return (_("%(n)s %% more than planned") if ratio > 1 else _("%(n)s %% less than planned")) % {"n": percent}
