"""Files of the charts of one machine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.text import slugify
from django.utils.translation import gettext as _

from fleet.downloads import Table, UnknownFormatError, file_response, format_of
from fleet.inventory.models import Instance
from fleet.pages.charts import Drawn, Trace


def chart_file(
    request: HttpRequest, charts: Sequence[Drawn], *, instance: Instance, until: datetime
) -> HttpResponse | None:
    """The file of the chart that `?chart=` names; None where no `?format=` asks for one."""
    try:
        kind = format_of(request)
    except UnknownFormatError as error:
        return refusal(str(error))
    if kind is None:
        return None
    wanted = request.GET.get("chart", "")
    found = next((drawn for drawn in charts if drawn.chart.name == wanted), None)
    if found is None:
        known = ", ".join(drawn.chart.name for drawn in charts) or _("none, there are no readings yet")
        return refusal(_("chart: give one of those that this machine has: %(known)s.") % {"known": known})
    name = f"{slugify(instance.name) or instance.pk}-{wanted}-{until:%Y-%m-%dT%H%MZ}"
    return file_response(chart_table(found), kind=kind, name=name)


def refusal(detail: str) -> JsonResponse:
    return JsonResponse({"error": "invalid", "detail": detail}, status=400)


def chart_table(drawn: Drawn) -> Table:
    """A column a line, in the unit that is stored and stands in its name, whatever unit the axis has."""
    notes = {"resolution": drawn.resolution, "bucket_seconds": f"{drawn.bucket_seconds:g}", "statistic": "mean"}
    return Table(drawn.starts, {_column(trace): trace.values for trace in drawn.traces}, notes)


def _column(trace: Trace) -> str:
    return trace.field if trace.gpu is None else f"gpu{trace.index}_{trace.field}"
