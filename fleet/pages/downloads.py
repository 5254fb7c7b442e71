"""Files of the charts of one machine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.text import slugify
from django.utils.translation import gettext as _

from fleet.downloads import Table, UnknownFormatError, file_response, format_of
from fleet.pages.charts import Drawn, Trace
from fleet.pages.history import History
from fleet.pages.machine import MachineView
from fleet.states import GpuState
from fleet.telemetry.store.base import StoreError

logger = logging.getLogger(__name__)


def chart_file(
    request: HttpRequest, tables: Callable[[str], Mapping[str, Table]], *, name: str, until: datetime
) -> HttpResponse | None:
    """The file of the chart that `?chart=` names; None where no `?format=` asks for one.

    tables: from the name that is asked for to the charts there are, by name. `name`: whose charts they are.
    """
    try:
        kind = format_of(request)
    except UnknownFormatError as error:
        return refusal(str(error))
    if kind is None:
        return None
    wanted = request.GET.get("chart", "")
    try:
        found = tables(wanted)
    except StoreError:
        logger.exception("A chart cannot be made into a file")
        return refusal(
            _("The store of readings cannot answer just now. Ask again later."), error="unavailable", status=503
        )
    if wanted not in found:
        known = ", ".join(found) or _("none, there are no readings yet")
        return refusal(_("chart: give one of those that this machine has: %(known)s.") % {"known": known})
    return file_response(found[wanted], kind=kind, name=f"{slugify(name)}-{wanted}-{until:%Y-%m-%dT%H%MZ}")


def refusal(detail: str, *, error: str = "invalid", status: int = 400) -> JsonResponse:
    return JsonResponse({"error": error, "detail": detail}, status=status)


def chart_table(drawn: Drawn) -> Table:
    """A column a line, in the unit that is stored and stands in its name, whatever unit the axis has."""
    notes = {"resolution": drawn.resolution, "bucket_seconds": f"{drawn.bucket_seconds:g}", "statistic": "mean"}
    return Table(drawn.starts, {_column(trace): trace.values for trace in drawn.traces}, notes)


def _column(trace: Trace) -> str:
    return trace.field if trace.gpu is None else f"gpu{trace.index}_{trace.field}"


def bands_table(view: MachineView, history: History) -> Table:
    """A column a GPU: in which state it was for most of each bucket; empty while it was not known yet."""
    columns = {
        f"gpu{tile.index}_state": [state.value if state else None for state in states]
        for tile, states in zip(view.tiles, history.states.values(), strict=True)
    }
    return Table(history.starts, columns, _notes(history))


def counts_table(history: History) -> Table:
    """A column a state: how many GPUs were in it."""
    counts = history.counts()
    columns = {f"{state.value}_gpus": [count[state] for count in counts] for state in GpuState}
    return Table(history.starts, columns, _notes(history))


def _notes(history: History) -> dict[str, str]:
    return {"resolution": history.resolution, "bucket_seconds": f"{history.bucket_seconds:g}", "statistic": "mode"}
