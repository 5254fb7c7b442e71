"""Which of a machine's endpoints is a job's: by its port, and by its model where the engine has several."""

from __future__ import annotations

from datetime import timedelta

from django.db.models import F

from fleet.telemetry.serving.models import ServingLatest
from jobs.book.models import Attempt
from jobs.book.serving import Serving
from jobs.serving.models import Server

# The readings of an attempt that ended are as old as its end.
HEARD_BEFORE = timedelta(minutes=1)


def server_of(attempt: Attempt) -> Server | None:
    """Of the first machine: that of the others is the same, or has another part in it."""
    return Server.objects.filter(node__attempt=attempt, node__rank=0).select_related("node__instance").first()


def endpoint_of(server: Server, serving: Serving, attempt: Attempt) -> ServingLatest | None:
    """None: its metrics were never read while this attempt ran."""
    rows = ServingLatest.objects.filter(
        instance=server.node.instance_id,
        port__in=[serving.port, serving.metrics_port or serving.port],
        sampled_at__gte=(attempt.started_at or attempt.created_at) - HEARD_BEFORE,
    )
    names = [serving.model] if serving.model else server.model_names
    known = rows.order_by(F("last_request_at").desc(nulls_last=True), "-sampled_at")
    return known.filter(model__in=names).first() or known.first()
