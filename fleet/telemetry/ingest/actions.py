"""What agents are asked to do, with the answer to a heartbeat, and POST /ingest/v1/actions: what became of it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec
from channels.db import database_sync_to_async
from django.db import DatabaseError
from django.utils import timezone

from fleet.telemetry.actions.cleaning import clean_lines, clean_result
from fleet.telemetry.actions.report import Told, UnknownActionError, take_report
from fleet.telemetry.ingest.agents import KnownAgent
from fleet.telemetry.ingest.errors import BusyError, NotFoundError, UnavailableError
from fleet.telemetry.wire import ActionReport

# An action makes two reports; what is more is a loop, and reports run in the thread that pages use too.
REPORTS_A_MINUTE = 20
DETAIL_MAX_LENGTH = 300

_encode = msgspec.json.Encoder().encode


def asked_json(rows: Iterable[tuple[int, str, dict[str, Any], float]]) -> bytes:
    """The member of a heartbeat's answer, with the comma before it; empty where nothing is asked."""
    asked = [{"id": pk, "name": name, "options": options, "expires_at": at} for pk, name, options, at in rows]
    return b',"actions":%b' % _encode(asked) if asked else b""


async def take_action_report(agent: KnownAgent, report: ActionReport) -> None:
    """Raises NotFoundError, BusyError or UnavailableError."""
    _admit(agent.reports, time.monotonic())
    told = Told(
        action_id=report.id,
        state=report.state,
        result=clean_result(report.result or {}),
        detail=clean_lines(report.detail or "", DETAIL_MAX_LENGTH),
    )
    try:
        await database_sync_to_async(take_report)(instance_id=agent.instance_id, told=told, now=timezone.now())
    except UnknownActionError:
        raise NotFoundError("This machine was asked for no action with this id.", field="id") from None
    except DatabaseError as error:
        raise UnavailableError(f"The database cannot be reached ({type(error).__name__}). Try again.") from error


def _admit(reports: deque[float], now: float) -> None:
    """Raises BusyError."""
    while reports and reports[0] <= now - 60.0:
        reports.popleft()
    if len(reports) >= REPORTS_A_MINUTE:
        raise BusyError(f"At most {REPORTS_A_MINUTE} reports a minute. Try again later.")
    reports.append(now)
