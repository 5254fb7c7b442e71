"""Background work of servers."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from jobs.serving.due import add_servers, due
from jobs.serving.models import Probe
from jobs.serving.run import look_at

# Later than that, the beat has sent it again.
EXPIRES_SECONDS = 15
# A look has its own ends; these catch a machine that keeps a connection open for ever.
SOFT_LIMIT_SECONDS, HARD_LIMIT_SECONDS = 240, 270
AT_ONCE = 200
PROBES_KEPT = timedelta(days=7)


@shared_task(name="jobs.dispatch_looks")
def dispatch_looks() -> int:
    now = timezone.now()
    add_servers(now=now)
    found = list(due(now=now).order_by("next_at").values_list("pk", flat=True)[:AT_ONCE])
    for server_id in found:
        look_at_server.apply_async((server_id,), expires=EXPIRES_SECONDS)
    return len(found)


@shared_task(name="jobs.look_at_server", soft_time_limit=SOFT_LIMIT_SECONDS, time_limit=HARD_LIMIT_SECONDS)
def look_at_server(server_id: int) -> bool:
    """Does nothing where it was sent twice."""
    return look_at(server_id=server_id) is not None


@shared_task(name="jobs.prune_probes")
def prune_probes() -> int:
    removed, _by_model = Probe.objects.filter(at__lt=timezone.now() - PROBES_KEPT).delete()
    return removed
