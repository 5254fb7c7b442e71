"""Live values for browsers whose network blocks websockets: they ask every few seconds."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from django.http import Http404, HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from fleet.teams.access import TeamRequest
from fleet.telemetry.live import machines_of, news_since
from fleet.telemetry.live_access import MAX_MACHINES
from fleet.telemetry.live_operations import steps_since

# What is older than this is no news; a page that was away so long reads its charts again.
MAX_BACK_SECONDS = 600.0


class BadQuery(ValueError):
    pass


@require_GET
@never_cache
def live(request: TeamRequest) -> JsonResponse:
    """?since=<epoch>&machines=17,18 → {"messages": […], "now": …}; the messages are those of the websocket."""
    now = timezone.now()
    try:
        since, wanted = _since(request, now), _machine_ids(request)
    except BadQuery as error:
        return JsonResponse({"error": "invalid", "detail": str(error)}, status=400)
    machines = machines_of(request.team)
    if wanted is not None:
        machines = machines.filter(pk__in=wanted)
        if machines.count() != len(wanted):
            raise Http404
    messages = news_since(machines=machines.order_by("pk")[:MAX_MACHINES], since=since, now=now)
    messages += steps_since(machines, since)
    return JsonResponse({"messages": messages, "now": now.timestamp()})


def _since(request: HttpRequest, now: datetime) -> datetime:
    word = request.GET.get("since", "")
    try:
        moment = float(word) if word else now.timestamp()
    except ValueError:
        moment = math.nan
    if not math.isfinite(moment):
        raise BadQuery("since: seconds since the epoch, as a number.")
    earliest = now.timestamp() - MAX_BACK_SECONDS
    return datetime.fromtimestamp(min(max(moment, earliest), now.timestamp()), UTC)


def _machine_ids(request: HttpRequest) -> set[int] | None:
    words = [word for word in request.GET.get("machines", "").split(",") if word]
    if not words:
        return None
    if len(words) > MAX_MACHINES or not all(word.isascii() and word.isdigit() and len(word) < 19 for word in words):
        raise BadQuery(f"machines: at most {MAX_MACHINES} ids, separated by commas.")
    return {int(word) for word in words}
