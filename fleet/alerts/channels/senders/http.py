"""Senders that make one HTTP request. The guard is the one of every address that a person types; redirects are not followed."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from fleet.alerts.channels.senders.base import Message, Outcome, Result, Sender
from fleet.guard import Guard, RefusedAddressError, guarded_client

TIMEOUT_SECONDS = 10.0
# Every single read may be in time, and the answer still never end.
MOST_SECONDS = 20.0
# Nobody answers a webhook with more that is worth reading.
MOST_BYTES = 65_536
MOST_WAIT_SECONDS = 3_600.0
DETAIL_LENGTH = 200

# The request may have arrived before these: nobody can tell. The others never got as far.
_UNCERTAIN = (httpx.ReadTimeout, httpx.ReadError, httpx.RemoteProtocolError, httpx.WriteError, httpx.WriteTimeout)
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
        headers = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "Rackrent", **request.headers}
        try:
            with guarded_client(guard, timeout_seconds=self.timeout_seconds) as client:
                response = client.send(
                    client.build_request("POST", request.url, content=request.content, headers=headers), stream=True
                )
                text = _read(response)
        except RefusedAddressError as error:
            return Outcome(Result.BROKEN, "address", error.code)
        except _UNCERTAIN as error:
            return Outcome(Result.UNCERTAIN, "no_answer", type(error).__name__)
        except httpx.InvalidURL:
            return Outcome(Result.BROKEN, "address", "no_url")
        except httpx.HTTPError as error:
            return Outcome(Result.RETRY, "unreachable", type(error).__name__)
        return self._outcome(response, text)

    def _outcome(self, response: httpx.Response, text: str) -> Outcome:
        status = response.status_code
        answer = _parsed(text)
        detail = f"HTTP {status} {plain_detail(answer, text)}".strip()[:DETAIL_LENGTH]
        if status < 300:
            return self.judge(answer, response)
        if status == 429:
            return Outcome(Result.RETRY, "rate", detail, retry_after_seconds=retry_after(response, answer))
        if status >= 500:
            return Outcome(Result.RETRY, "server", detail, retry_after_seconds=retry_after(response, answer))
        if status < 400:
            return Outcome(Result.BROKEN, "redirect", detail)
        if status in _GONE:
            return Outcome(Result.BROKEN, _GONE[status], detail)
        return Outcome(Result.RETRY, "server", detail) if status in {408, 425} else self.refused(answer, detail)

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


def _read(response: httpx.Response) -> str:
    """The beginning of the answer. Raises as httpx does where the other side hangs up in the middle of it."""
    ends = time.monotonic() + MOST_SECONDS
    try:
        got = b""
        for chunk in response.iter_bytes():
            got += chunk
            if time.monotonic() > ends:
                raise httpx.ReadTimeout("The answer came too slowly.")
            if len(got) >= MOST_BYTES:
                break
        return got[:MOST_BYTES].decode("utf-8", "replace")
    finally:
        response.close()


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
