"""How far the figures of a report can be trusted, in the reader's language."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.costs.reports.report import Accuracy, Report
from fleet.formats import money_text, whole_money_text


def notes_of(report: Report) -> Iterator[str]:
    if report.accuracy is not None:
        yield forecast_note(report.accuracy, report.currency)
    if report.unpriced_hours:
        text = ngettext(
            "%(n)s machine-hour has a price that nobody told, and is in no total.",
            "%(n)s machine-hours have a price that nobody told, and are in no total.",
            report.unpriced_hours,
        )
        yield text % {"n": f"{report.unpriced_hours:,}"}
    for currency, amount in report.unconverted.items():
        words = {"money": money_text(amount, currency), "into": report.currency}
        yield _("%(money)s has no rate to %(into)s and is in no total.") % words
    if report.confirmed_percent is None:
        yield _(
            "No bill of the month has been read: this is what providers were seen to charge, with what people corrected."
        )
    else:
        yield _("Bills bear out %(percent)s%% of it.") % {"percent": report.confirmed_percent}


def forecast_note(found: Accuracy, currency: str) -> str:
    """What was said, by how much it was off, and whether that was within its own band."""
    words = {
        "day": date_format(found.made_on, "MONTH_DAY_FORMAT"),
        "money": whole_money_text(found.said, currency),
        "percent": abs(found.off_percent),
    }
    if found.off_percent > 0:
        said = _("The forecast of %(day)s was %(money)s, %(percent)s%% too high.") % words
    elif found.off_percent < 0:
        said = _("The forecast of %(day)s was %(money)s, %(percent)s%% too low.") % words
    else:
        said = _("The forecast of %(day)s was %(money)s, and right.") % words
    if found.is_within is None:
        return said
    came = _("It ended within its range.") if found.is_within else _("It ended outside of its range.")
    return f"{said} {came}"
