"""Questions to a team's Prometheus, through the guard and within limits."""

from __future__ import annotations

import httpx
import msgspec

from fleet.telemetry.scrape.fetch import FetchError, fetch_text
from fleet.telemetry.sources.pages import Series

DEADLINE_SECONDS = 30.0
# The last two and a half minutes of some five hundred machines with 8 GPUs, scraped every 15 s: 120 kB each.
MAX_BYTES = 64 << 20
# A server may round the moments of samples up to the end that was asked for.
SLACK_SECONDS = 1.0


class _Data(msgspec.Struct, rename="camel"):
    result_type: str = ""
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Answer(msgspec.Struct):
    status: str = ""
    data: _Data | None = None
    error: str = ""


_decode = msgspec.json.Decoder(_Answer).decode
_decode_series = msgspec.json.Decoder(list[Series]).decode


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
    text = await fetch_text(
        client,
        f"{url.rstrip('/')}/api/v1/query",
        token,
        asked=asked,
        headers={"X-Scope-OrgID": tenant} if tenant else {},
        deadline_seconds=DEADLINE_SECONDS,
        most_bytes=MAX_BYTES,
        accepts=(200, 400, 422),
    )
    found = series_in(text)
    earliest, latest = until - seconds - SLACK_SECONDS, until + SLACK_SECONDS
    for one in found:
        one.values = [(at, value) for at, value in one.values if earliest <= at <= latest]
    return found


def series_in(text: str) -> list[Series]:
    """Raises FetchError for what no Prometheus answers to a question for samples, and for its refusals."""
    try:
        answer = _decode(text)
        if answer.status == "error":
            raise FetchError("query", answer.error[:150])
        if answer.status != "success" or answer.data is None or answer.data.result_type != "matrix":
            raise FetchError("no_prometheus")
        return _decode_series(answer.data.result)
    # A text may also be nested too deeply, or hold half a character.
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise FetchError("no_prometheus") from None
