"""Packed hours as a relation that stands in for the table of samples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection
from django.utils import timezone
from psycopg import sql

from fleet.telemetry.packed.codec import unpack_hour
from fleet.telemetry.packed.fields import GPU_FIELDS, HOST_FIELDS, Exact, Field

HOUR = timedelta(hours=1)
# GPU-hours that one chart unpacks at most, some 1.5 million samples and seconds of work; beyond that rollups answer.
MOST_HOURS = 4_096
FIELDS: Mapping[str, Mapping[str, Field]] = {"gpu": GPU_FIELDS, "host": HOST_FIELDS}

_KEPT = """
SELECT EXISTS (SELECT FROM gpu_hour WHERE hour_at > %(before)s AND hour_at < %(until)s)
    OR EXISTS (SELECT FROM host_hour WHERE hour_at > %(before)s AND hour_at < %(until)s)
    OR EXISTS (SELECT FROM gpu_sample WHERE sampled_at >= %(since)s AND sampled_at < %(until)s)
    OR EXISTS (SELECT FROM host_sample WHERE sampled_at >= %(since)s AND sampled_at < %(until)s)
"""


def samples_are_kept(*, since: datetime, until: datetime, owners: int) -> bool:
    """Whether anything of an old span is there as samples, packed or not, and little enough for a chart of so many GPUs or machines."""
    if owners * ((until - since) / HOUR + 1) > MOST_HOURS:
        return False
    with connection.cursor() as cursor:
        cursor.execute(_KEPT, {"before": since - HOUR, "since": since, "until": until})
        return bool(cursor.fetchone() == (True,))


def packed_samples(
    *, kind: str, key: str, ids: Sequence[int], names: Collection[str], since: datetime, until: datetime
) -> sql.Composed | None:
    """What to read FROM: columns `key`, sampled_at and `names` of the packed samples around [since, until); None where there are none.

    `kind` begins the name of the table: "gpu" or "host". Nothing younger than the table of samples reaches back is looked for.
    """
    if since > timezone.now() - timedelta(days=settings.RAW_RETENTION_DAYS):
        return None
    columns = _columns(kind, _hours(kind, key, ids, since, until), [*names, "sampled_at"])
    if not columns["owner"]:
        return None
    types = {name: "int8" if isinstance(FIELDS[kind][name].precision, Exact) else "float8" for name in names}
    arrays = (
        sql.SQL("{}::{}[]").format(sql.Literal(list(columns[name])), sql.SQL(types.get(name, "int8")))
        for name in ("owner", "sampled_at", *names)
    )
    moment = sql.SQL("timestamptz 'epoch' + at * interval '1 microsecond' AS sampled_at")
    return sql.SQL("(SELECT {shown} FROM unnest({arrays}) AS packed({known})) packed_samples").format(
        shown=_joined([sql.Identifier(key), moment, *map(sql.Identifier, names)]),
        arrays=_joined(arrays),
        known=_joined(map(sql.Identifier, (key, "at", *names))),
    )


def _joined(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)


def _hours(kind: str, key: str, ids: Sequence[int], since: datetime, until: datetime) -> list[tuple[int, bytes]]:
    query = sql.SQL(
        "SELECT {key}, payload || overflow FROM {table} WHERE {key} = ANY(%s) AND hour_at > %s AND hour_at < %s"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            query.format(key=sql.Identifier(key), table=sql.Identifier(f"{kind}_hour")),
            [list(ids), since - HOUR, until],
        )
        return [(owner, bytes(payload)) for owner, payload in cursor.fetchall()]


def _columns(kind: str, hours: Iterable[tuple[int, bytes]], names: Sequence[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {name: [] for name in ("owner", *names)}
    for owner, payload in hours:
        hour = unpack_hour(payload, FIELDS[kind], names)
        found["owner"] += [owner] * len(hour["sampled_at"])
        for name in names:
            found[name] += hour[name]
    return found
