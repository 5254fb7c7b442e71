"""POST /jobs/v1/tell: a job says how far it is, with the token that its environment holds. One line from any program:

    rackrent.log(step=10, loss=2.1)

Names that have a column are kept there, other numbers beside them. It is answered at once and limited, so that no loop is slowed by it.
"""

from __future__ import annotations

import json
from dataclasses import fields
from math import isfinite
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from fleet.teams.secrets import hash_token
from jobs.book.models import OPEN_STATES, Attempt, Job
from jobs.metrics.store import store_call
from jobs.progress.pairs import NAMES
from jobs.progress.point import Point

MOST_BYTES = 16 * 1024
MOST_OTHERS = 40
# Points a second of one job; what is more is refused with the time to wait.
PER_SECOND = 5
_COLUMNS = {field.name for field in fields(Point)}
_WHOLE = {"step", "steps", "memory_bytes", "skipped_steps"}


@login_not_required
@csrf_exempt
@require_POST
def job_tell(request: HttpRequest) -> JsonResponse:
    attempt = _attempt_of(request)
    if attempt is None:
        return _refused(401, "bad_token", "This token is of no job that runs.", "")
    if len(request.body) > MOST_BYTES:
        return _refused(413, "too_large", f"A point has at most {MOST_BYTES} bytes.", "")
    if _too_many(attempt):
        answer = _refused(429, "busy", f"At most {PER_SECOND} points a second: tell every so many steps.", "")
        answer["Retry-After"] = "1"
        return answer
    try:
        point, others = read_call(request.body)
    except OverflowError:
        return _refused(422, "invalid", "A number is too large.", "body")
    except ValueError as error:
        field, _, text = str(error).partition(": ")
        return _refused(422, "invalid", text, field)
    store_call(attempt=attempt, point=point, others=others, at=timezone.now())
    return JsonResponse({"kept": True}, status=201)


def read_call(body: bytes) -> tuple[Point, dict[str, float]]:
    """Raises ValueError as "field: what is wrong"."""
    try:
        given = json.loads(body)
    except ValueError:
        raise ValueError("body: This is no JSON.") from None
    if not isinstance(given, dict) or not given:
        raise ValueError('body: Send an object of names and numbers, such as {"step": 10, "loss": 2.1}.')
    columns: dict[str, Any] = {}
    others: dict[str, float] = {}
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"{name[:40]}: Only numbers are kept.")  # noqa: TRY004 - a value of JSON
        column = name if name in _COLUMNS else NAMES.get(name.lower())
        if column is not None:
            columns[column] = _number(column, name, value)
        elif isfinite(value):
            others[name[:60]] = float(value)
    if len(others) > MOST_OTHERS:
        raise ValueError(f"body: At most {MOST_OTHERS} names of your own.")
    return Point(**columns), others


def _number(column: str, name: str, value: float) -> float | int | None:
    """A loss that is no number is what a reader has to see; elsewhere it says nothing."""
    if not isfinite(value):
        return float("nan") if column == "loss" else None
    if column not in _WHOLE:
        return float(value)
    if value != int(value) or abs(value) >= 2**63:
        raise ValueError(f"{name}: This is a whole number.")
    return int(value)


def _attempt_of(request: HttpRequest) -> Attempt | None:
    kind, _, token = request.headers.get("Authorization", "").partition(" ")
    if kind != "Bearer" or not token.startswith("rrj_"):
        return None
    job = Job.objects.filter(token_hash=hash_token(token), state__in=OPEN_STATES).first()
    return job.attempts.order_by("-number").first() if job else None


def _too_many(attempt: Attempt) -> bool:
    key = f"jobs.tell:{attempt.pk}:{int(timezone.now().timestamp())}"
    cache.add(key, 0, timeout=5)
    return cache.incr(key) > PER_SECOND


def _refused(status: int, code: str, detail: str, field: str) -> JsonResponse:
    return JsonResponse({"error": code, "detail": detail, "field": field}, status=status)
