"""Readings of engines that a worker read itself, stored as those of agents are: in PostgreSQL, summed in the same statement."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import psycopg
from django.db import connection, transaction
from django.utils import timezone

from fleet.telemetry.ingest import arrays
from fleet.telemetry.ingest.statements import parameters
from fleet.telemetry.serving import statements as sql
from fleet.telemetry.serving.readings import Endpoint, endpoint_of, newest, rows_of
from fleet.telemetry.serving.write import MAX_ENDPOINTS
from fleet.telemetry.wire import Sample, ServingWire


@transaction.atomic
def keep_readings(*, instance_id: int, readings: Sequence[ServingWire], at: datetime) -> int:
    """Returns how many there were; the same moment again adds nothing. What a machine names beyond MAX_ENDPOINTS is left out."""
    if not readings:
        return 0
    connection.ensure_connection()
    with psycopg.Cursor(connection.connection) as cursor:
        arrays.register(cursor)
        ids = _endpoints(cursor, instance_id, {endpoint_of(one) for one in readings})
        sample = Sample(at=at.timestamp(), serving=list(readings))
        found = list(rows_of(sample, at.timestamp(), ids, Counter()))
        rows = [row for row, _shows_request in found]
        if rows:
            received_at = timezone.now().timestamp()
            requested = sorted({row[0]: row[1] for row, shows_request in found if shows_request}.items())
            cursor.execute(sql.INSERT_SAMPLES, parameters(sql.SAMPLE, rows))
            cursor.execute(sql.UPDATE_LATEST, parameters(sql.LATEST, newest(rows, received_at=received_at)))
            if requested:
                cursor.execute(sql.UPDATE_REQUESTED, parameters(sql.REQUESTED, requested))
    return len(rows)


def _endpoints(
    cursor: psycopg.Cursor[tuple[str, str, int, int]], instance_id: int, named: set[Endpoint]
) -> dict[Endpoint, int]:
    known = _ids(cursor.execute(sql.KNOWN_ENDPOINTS, [instance_id]))
    missing = sorted(named - known.keys())[: max(0, MAX_ENDPOINTS - len(known))]
    if missing:
        columns = [list(column) for column in zip(*missing, strict=True)]
        known |= _ids(cursor.execute(sql.ADD_ENDPOINTS, [instance_id, *columns]))
    return known


def _ids(cursor: psycopg.Cursor[tuple[str, str, int, int]]) -> dict[Endpoint, int]:
    return {(engine, model, port): pk for engine, model, port, pk in cursor.fetchall()}
