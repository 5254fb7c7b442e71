"""How long events, environments and serving endpoints are kept. Samples go with their partitions; these are rows that a hostile machine could pile up."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection
from psycopg import sql

from fleet.telemetry.actions.models import AgentAction
from fleet.telemetry.models import MachineEvent
from fleet.telemetry.serving.models import ServingLatest

# 13 months, as costs and rollups: the same month of last year can still be looked at.
EVENT_LIFETIME = timedelta(days=400)
MAX_EVENTS_PER_MACHINE = 20_000
MAX_ENVIRONMENTS_PER_MACHINE = 500

_BEYOND = """
DELETE FROM {table} WHERE id IN (
    SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY instance_id ORDER BY {moment} DESC, id DESC) AS place FROM {table}) ranked
    WHERE place > %s)
"""


def prune_records(*, now: datetime) -> dict[str, int]:
    """Delete what is too old or too much, the oldest first. Returns how many rows went, by table."""
    old, _ = MachineEvent.objects.filter(at__lt=now - EVENT_LIFETIME).delete()
    events = _keep_newest("fleet_machineevent", "at", MAX_EVENTS_PER_MACHINE)
    environments = _keep_newest("fleet_environmentreport", "reported_at", MAX_ENVIRONMENTS_PER_MACHINE)
    AgentAction.objects.filter(asked_at__lt=now - EVENT_LIFETIME).delete()
    silent, _ = ServingLatest.objects.filter(received_at__lt=now - EVENT_LIFETIME).delete()
    return {"events": old + events, "environments": environments, "endpoints": silent}


def _keep_newest(table: str, moment: str, most: int) -> int:
    query = sql.SQL(_BEYOND).format(table=sql.Identifier(table), moment=sql.Identifier(moment))
    with connection.cursor() as cursor:
        cursor.execute(query, [most])
        return int(cursor.rowcount)
