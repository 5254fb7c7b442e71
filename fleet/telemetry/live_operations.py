"""Tells open pages of each step of an operation, over the channel by which they hear of the machine's samples.

The same message is answered to browsers that poll. A launch has no machine, hence no channel, until its machine is known.
"""

from __future__ import annotations

import logging
from datetime import datetime
from functools import cache
from typing import Any

import msgspec
import redis
from django.conf import settings
from django.db.models import QuerySet
from redis.exceptions import RedisError

from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation, OperationEvent
from fleet.inventory.operations.signals import operation_changed
from fleet.telemetry.live import channel_name

logger = logging.getLogger(__name__)
_CHANNEL_TIMEOUT_SECONDS = 2.0


def operation_message(operation: Operation, *, at: float) -> dict[str, Any]:
    """Codes only: what they are called, the page asks for in its reader's language."""
    return {
        "type": "operation",
        "machine": operation.instance_id,
        "at": at,
        "operation": {
            "id": operation.pk,
            "kind": operation.kind,
            "state": operation.state,
            "seen_state": operation.seen_state,
            "proof": operation.proof,
            "error_kind": operation.error_kind,
        },
    }


def steps_since(machines: QuerySet[Instance], since: datetime) -> list[dict[str, Any]]:
    """The newest step of each operation that took one after `since`. One query."""
    steps = OperationEvent.objects.filter(operation__instance__in=machines, at__gt=since)
    newest = {step.operation_id: step for step in steps.select_related("operation").order_by("at", "pk")}
    return [operation_message(step.operation, at=step.at.timestamp()) for step in newest.values()]


def tell_pages(*, operation: Operation, **_signal: object) -> None:
    """A broker that is away costs the pages this step: they show the next one, or read all anew when they come back."""
    if operation.instance_id is None:
        return
    step = operation.events.order_by("-at", "-pk").values_list("at", flat=True).first()
    if step is None:
        return
    text = msgspec.json.encode(operation_message(operation, at=step.timestamp()))
    try:
        broker().publish(channel_name(operation.instance_id), text)
    except (RedisError, OSError) as error:
        logger.warning("Open pages were not told of operation %s: %s", operation.pk, type(error).__name__)


@cache
def broker() -> Any:
    timeout = _CHANNEL_TIMEOUT_SECONDS
    return redis.Redis.from_url(settings.REDIS_URL, socket_connect_timeout=timeout, socket_timeout=timeout)


def listen() -> None:
    operation_changed.connect(tell_pages, dispatch_uid="fleet.telemetry.live_operations")
