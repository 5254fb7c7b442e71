"""Questions to a team's Prometheus, through the guard and within limits."""

from __future__ import annotations

from math import inf
from typing import TypedDict

import httpx
import msgspec

from fleet.telemetry.scrape.fetch import FetchError, fetch_text

DEADLINE_SECONDS = 30.0
# The last minutes of some five hundred machines with eight GPUs each.
MAX_BYTES = 64 << 20


# The newest sample may be a little ahead of this machine's clock.
AHEAD_SECONDS = 60.0


class Series(TypedDict):
    """Labels, and (seconds since the epoch, number as text) ascending."""

    metric: dict[str, str]
    values: list[tuple[float, str]]


class _Data(msgspec.Struct):
    result: list[Series] = []


class _Answer(msgspec.Struct):
    status: str = ""
    data: _Data | None = None
    error: str = ""


_decode = msgspec.json.Decoder(_Answer).decode


async def samples_between(
    client: httpx.AsyncClient,
    *,
    url: str,
    token: str,
    tenant: str,
    names: list[str],
    selector: str,
    until: float,
    seconds: int,
) -> list[Series]:
    """The samples themselves, at the moments they were scraped, of (until - seconds, until]: a range of points would repeat old ones in gaps.

    Raises FetchError.
    """
    matchers = ",".join(part for part in (f'__name__=~"{"|".join(names)}"', selector) if part)
    # `nocache` is for VictoriaMetrics, which would hold the newest half minute back.
    asked = {"query": f"{{{matchers}}}[{seconds}s]", "time": f"{until:.3f}", "nocache": "1"}
    headers = {"X-Scope-OrgID": tenant} if tenant else {}
    text = await fetch_text(
        client,
        f"{url.rstrip('/')}/api/v1/query",
        token,
        asked=asked,
        headers=headers,
        deadline_seconds=DEADLINE_SECONDS,
        most_bytes=MAX_BYTES,
        accepts=(200, 400, 422),
    )
    try:
        answer = _decode(text)
    except msgspec.DecodeError:
        raise FetchError("no_prometheus") from None
    if answer.status != "success" or answer.data is None:
        raise FetchError("query", answer.error[:150])
    oldest, newest = until - seconds - 1, until + AHEAD_SECONDS
    for one in answer.data.result:
        one["values"] = [pair for pair in one["values"] if oldest <= pair[0] <= newest and _is_number(pair[1])]
    return answer.data.result


def _is_number(text: str) -> bool:
    """NaN is one: a series that ended says so."""
    try:
        return abs(float(text)) != inf
    except ValueError:
        return False
