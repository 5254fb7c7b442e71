"""How the operator's Prometheus-compatible store is asked: headers, and PromQL over its HTTP API."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import cache as remembered
from hashlib import sha256
from typing import Any

import httpx
from django.conf import settings
from django.core.cache import cache

from fleet.telemetry.store.base import StoreError

# A store that hangs must not take every thread of the web server with it: whoever was kept waiting spares the others for a while.
TIMEOUT = httpx.Timeout(10.0, connect=2.0)
AWAY_SECONDS = 10


def request_headers() -> dict[str, str]:
    """The tenant, and whoever we are to the store. Never logged."""
    headers = {"User-Agent": "rackrent"}
    if settings.TELEMETRY_TENANT:
        headers["X-Scope-OrgID"] = settings.TELEMETRY_TENANT
    if settings.TELEMETRY_BEARER_TOKEN:
        headers["Authorization"] = f"Bearer {settings.TELEMETRY_BEARER_TOKEN}"
    elif settings.TELEMETRY_USER:
        login = httpx.BasicAuth(settings.TELEMETRY_USER, settings.TELEMETRY_PASSWORD)
        request = next(login.auth_flow(httpx.Request("GET", "http://store")))
        headers["Authorization"] = request.headers["Authorization"]
    return headers


@dataclass(frozen=True, slots=True)
class Line:
    """One series of an answer: (seconds since the epoch, value) ascending, without gaps' points."""

    labels: dict[str, str]
    points: list[tuple[float, float]]


def query_range(query: str, *, start: float, end: float, step: int) -> list[Line]:
    """Raises StoreError. `nocache`: VictoriaMetrics would move start and end to multiples of the step otherwise; others do not know the word."""
    asked = {"query": query, "start": f"{start:.3f}", "end": f"{end:.3f}", "step": str(step), "nocache": "1"}
    return [
        Line(one["metric"], [(float(moment), float(value)) for moment, value in one["values"]])
        for one in _answer("query_range", asked)
    ]


def _answer(path: str, asked: dict[str, str]) -> list[dict[str, Any]]:
    url = f"{settings.TELEMETRY_READ_URL.rstrip('/')}/api/v1/{path}"
    away = f"store:away:{sha256(url.encode()).hexdigest()}"
    if (known := cache.get(away)) is not None:
        raise StoreError(f"The store of readings cannot be reached ({known}, some seconds ago).")
    try:
        # In the body: a few hundred ids are longer than an address may be.
        response = httpx.post(
            url, data=asked, headers=request_headers(), timeout=TIMEOUT, trust_env=False, verify=_certificates()
        )
        answer = response.json()
    except httpx.HTTPError as error:
        cache.set(away, type(error).__name__, AWAY_SECONDS)
        raise StoreError(f"The store of readings cannot be reached ({type(error).__name__}).") from error
    except ValueError:
        raise StoreError(f"The store of readings answers {response.status_code}, and no JSON.") from None
    if not response.is_success or answer.get("status") != "success":
        raise StoreError(f"The store of readings answers {response.status_code}: {str(answer.get('error', ''))[:200]}")
    found: list[dict[str, Any]] = answer["data"]["result"]
    return found


@remembered
def _certificates() -> ssl.SSLContext:
    """Reading them takes longer than most questions."""
    return httpx.create_ssl_context(trust_env=False)
