"""Senders that make one HTTP request. The guard is the one of every address that a person types; redirects are not followed."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx

from fleet.alerts.channels.senders.base import Message, Outcome, Result, Sender
from fleet.guard import Guard, GuardedTransport, RefusedAddressError

TIMEOUT_SECONDS = 10.0
# For the whole of it: every single read may be in time, and the answer still never end.
MOST_SECONDS = 20.0
# Nobody answers a webhook with more that is worth reading.
MOST_BYTES = 65_536
MOST_WAIT_SECONDS = 3_600.0
DETAIL_LENGTH = 200

# These end before anything was sent. After any other nobody can tell whether it arrived.
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
# Of a gateway: whether the service behind it took the request, it does not know.
_GATEWAY = {502, 504}
_LATER = {408, 425, 429}
T = TypeVar("T")
_GONE = {401: "unauthorized", 403: "forbidden", 404: "not_found", 410: "gone"}


@dataclass(frozen=True, slots=True)
class Request:
    url: str
    body: Mapping[str, Any] | bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else as_json(self.body)


class HttpSender(Sender):
    timeout_seconds = TIMEOUT_SECONDS

    @abstractmethod
    def request(self, message: Message, config: Mapping[str, str]) -> Request: ...

    def judge(self, answer: Any, response: httpx.Response) -> Outcome:
        """Of an answer with a status under 300. `answer`: its JSON, None where it is none. Some services say no in the body."""
        return Outcome(Result.SENT)

    def send(self, message: Message, config: Mapping[str, str], guard: Guard) -> Outcome:
        request = self.request(message, config)
        try:
            response, text = in_time(self._post(request, guard))
        except RefusedAddressError as error:
            return Outcome(Result.BROKEN, "address", error.code)
        except UnicodeEncodeError:
            return Outcome(Result.BROKEN, "unauthorized", "headers take ASCII only")
        except _NEVER_SENT as error:
            return Outcome(Result.RETRY, "unreachable", type(error).__name__)
        except httpx.InvalidURL:
            return Outcome(Result.BROKEN, "address", "no_url")
        except (httpx.HTTPError, TimeoutError) as error:
            return Outcome(Result.UNCERTAIN, "no_answer", type(error).__name__)
        return self._outcome(response, text)

    async def _post(self, request: Request, guard: Guard) -> tuple[httpx.Response, str]:
        """One deadline for all of it: a server may drip its headers as well as its answer."""
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "Rackrent", **request.headers}
        timeout = httpx.Timeout(self.timeout_seconds)
        async with (
            asyncio.timeout(MOST_SECONDS),
            httpx.AsyncClient(transport=GuardedTransport(guard), timeout=timeout, trust_env=False) as client,
            client.stream("POST", request.url, content=request.content, headers=headers) as response,
        ):
            return response, await _beginning(response)

    def _outcome(self, response: httpx.Response, text: str) -> Outcome:
        status = response.status_code
        answer = _parsed(text)
        detail = f"HTTP {status} {plain_detail(answer, text)}".strip()[:DETAIL_LENGTH]
        if status < 300:
            return self.judge(answer, response)
        if status in _GATEWAY:
            return Outcome(Result.UNCERTAIN, "server", detail)
        if status in _LATER or status >= 500:
            code = "rate" if status == 429 else "server"
            return Outcome(Result.RETRY, code, detail, retry_after_seconds=retry_after(response, answer))
        if status < 400 or status in _GONE:
            return Outcome(Result.BROKEN, _GONE.get(status, "redirect"), detail)
        return self.refused(answer, detail)

    def refused(self, answer: Any, detail: str) -> Outcome:
        """Of the other statuses from 400 on: this message is not taken. Some services say there that the channel is gone."""
        return Outcome(Result.REFUSED, "refused", detail)


def as_json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def not_as_expected(response: httpx.Response) -> Outcome:
    """A page where a service should have answered: a proxy, a sign-in page. Nobody can tell whether it was taken."""
    return Outcome(Result.UNCERTAIN, "strange", f"HTTP {response.status_code} {response.headers.get('content-type', '')}"[:DETAIL_LENGTH])  # fmt: skip


def retry_after(response: httpx.Response, answer: Any = None) -> float | None:
    """Seconds: of the header, in both of its forms, or of the body where services put it there."""
    said = response.headers.get("retry-after", "")
    if not said and isinstance(answer, dict):
        inner = answer.get("parameters")
        said = answer.get("retry_after") or (inner.get("retry_after") if isinstance(inner, dict) else "")
    try:
        seconds = float(said)
    except (TypeError, ValueError):
        seconds = _seconds_until(str(said))
    return min(max(seconds, 1.0), MOST_WAIT_SECONDS) if seconds == seconds and seconds > 0 else None  # noqa: PLR0124


def _seconds_until(date: str) -> float:
    try:
        moment = parsedate_to_datetime(date)
    except (TypeError, ValueError):
        return 0.0
    return (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()


def plain_detail(answer: Any, text: str) -> str:
    """What the other side said of itself; of a page nothing."""
    if isinstance(answer, dict):
        said = next((answer[name] for name in ("errmsg", "msg", "message", "description", "error") if answer.get(name)), "")  # fmt: skip
        return _line(str(said))
    return "" if "<" in text else _line(text)


def _line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:120]


async def _beginning(response: httpx.Response) -> str:
    """Raises as httpx does where the other side hangs up in the middle of it."""
    got = b""
    async for chunk in response.aiter_bytes():
        got += chunk
        if len(got) >= MOST_BYTES:
            break
    return got[:MOST_BYTES].decode("utf-8", "replace")


def in_time(work: Coroutine[Any, Any, T]) -> T:
    """Runs it in a loop of its own. A name server that does not answer keeps its thread, which `asyncio.run` would wait for."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
