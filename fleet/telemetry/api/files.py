"""Series of the API as files: a row a bucket and GPU (or machine), so that any number of them has the same columns."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from rest_framework.exceptions import ValidationError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from fleet.downloads import MEDIA_TYPES, Table, series_csv, series_parquet

NOTES = ("resolution", "statistic", "bucket_seconds", "percentile_of")


class CsvRenderer(BaseRenderer):
    media_type, format, charset = MEDIA_TYPES["csv"], "csv", "utf-8"

    def render(self, data: Any, *_arguments: Any, **_context: Any) -> bytes:
        return series_csv(table_of(data)).encode()


class ParquetRenderer(BaseRenderer):
    media_type, format, charset, render_style = MEDIA_TYPES["parquet"], "parquet", None, "binary"

    def render(self, data: Any, *_arguments: Any, **_context: Any) -> bytes:
        return series_parquet(table_of(data))


RENDERERS = (JSONRenderer, CsvRenderer, ParquetRenderer)
FILE_ANSWERS = {CsvRenderer.media_type: OpenApiTypes.STR, ParquetRenderer.media_type: OpenApiTypes.BINARY}


class NamedFormats(DefaultContentNegotiation):
    """An unknown `?format=` is refused by name, instead of with "not found"."""

    def filter_renderers(self, renderers: Any, format: str) -> Any:  # noqa: A002 - DRF's name
        known = [renderer.format for renderer in renderers]
        if format not in known:
            raise ValidationError({"format": _("Give one of %(known)s.") % {"known": ", ".join(known)}})
        return super().filter_renderers(renderers, format)


def table_of(described: Mapping[str, Any]) -> Table:
    """From what api.samples.described makes."""
    starts, rows = described["starts"], described["series"]
    keys = [name for name in ("instance", "gpu", "part") if rows and name in rows[0]]
    fields = list(rows[0]["values"]) if rows else []
    columns = {name: [row[name] for row in rows for _start in starts] for name in keys}
    columns |= {name: list(chain.from_iterable(row["values"][name] for row in rows)) for name in fields}
    notes = {name: str(described[name]) for name in NOTES if described.get(name) is not None}
    return Table(list(starts) * len(rows), columns, notes)


def refuse_as_json(request: Request) -> None:
    """Whatever format the answer would have had."""
    request.accepted_renderer, request.accepted_media_type = JSONRenderer(), JSONRenderer.media_type
