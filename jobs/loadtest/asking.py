"""One request to an OpenAI-compatible server, timed as its answer comes in parts. What the server sends is bounded and never kept.

No Django. The client decides which server is reached.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from fleet.inventory.remote import RemoteError
from jobs.loadtest.sample import Sample

# Of one answer: a server that never ends is not read for ever.
MOST_BYTES = 8 * 1024 * 1024
MOST_LINE = 256 * 1024
# Words that every tokenizer knows as one token each; the number before them keeps a prefix cache from answering.
_WORDS = (
    "the",
    "time",
    "of",
    "one",
    "year",
    "and",
    "a",
    "day",
    "was",
    "long",
    "for",
    "all",
    "people",
    "in",
    "that",
    "city",
)


@dataclass(frozen=True, slots=True)
class Question:
    """`base`: the server's own address on its machine, without a path. `key`: its API key, "" = none."""

    base: str
    metrics_url: str
    model: str
    prompt_tokens: int
    answer_tokens: int
    request_seconds: float
    key: str = field(default="", repr=False)
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"} if self.key else {}

    def about(self, model: str) -> Question:
        return replace(self, model=model)

    def body(self, number: int) -> dict[str, Any]:
        return {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt_of(number, self.prompt_tokens)}],
            "max_tokens": self.answer_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self.extra,
        }


class BadAnswerError(Exception):
    """`code`: a key of words.ERRORS."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class _Heard:
    """What has come of one answer so far."""

    first_at: float | None = None
    parts: int = 0
    tokens: int = 0


def prompt_of(number: int, tokens: int) -> str:
    return " ".join([f"{number}:", *(_WORDS[(number + place) % len(_WORDS)] for place in range(max(tokens - 2, 1)))])


async def ask(
    client: httpx.AsyncClient, question: Question, number: int, *, clock: Callable[[], float], replica: int = 0
) -> Sample:
    """Never raises but for being cancelled: what went wrong stands in the sample."""
    began = clock()
    heard, error = _Heard(), ""
    try:
        async with asyncio.timeout(question.request_seconds):
            await _hear(client, question, number, heard, clock)
    except (TimeoutError, httpx.TimeoutException):
        error = "timeout"
    except BadAnswerError as bad:
        error = bad.code
    except (httpx.HTTPError, RemoteError, UnicodeDecodeError):
        error = "broken"
    first = heard.first_at - began if heard.first_at is not None else None
    return Sample(began, clock(), first, heard.tokens or heard.parts, error, replica)


async def _hear(
    client: httpx.AsyncClient, question: Question, number: int, heard: _Heard, clock: Callable[[], float]
) -> None:
    url = f"{question.base}/v1/chat/completions"
    async with client.stream(
        "POST", url, json=question.body(number), headers=question.headers, timeout=question.request_seconds
    ) as response:
        if response.status_code != httpx.codes.OK:
            raise BadAnswerError(code_of(response.status_code))
        if "text/event-stream" in response.headers.get("content-type", ""):
            async for event in events_of(response):
                _take(event, heard, clock)
        else:
            _take_whole(await _whole(response), heard)
    if not heard.parts and not heard.tokens:
        raise BadAnswerError("empty")


def code_of(status: int) -> str:
    if status in {401, 403}:
        return "key"
    if status in {404, 429}:
        return f"http_{status}"
    if status < 400:
        # Nothing is followed: it could lead elsewhere.
        return "redirect"
    return "http_5xx" if status >= 500 else "http_4xx"


async def events_of(response: httpx.Response) -> AsyncIterator[Any]:
    """The objects of a stream of server-sent events, up to [DONE]."""
    async for line in _lines(response):
        kind, _, data = line.partition(b":")
        if kind != b"data":
            continue
        if data.strip() == b"[DONE]":
            return
        yield _parsed(data)


async def _lines(response: httpx.Response) -> AsyncIterator[bytes]:
    rest, seen = b"", 0
    async for chunk in response.aiter_bytes():
        seen += len(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        if seen > MOST_BYTES or len(rest) > MOST_LINE:
            raise BadAnswerError("too_large")
        for line in whole:
            yield line
    if rest:
        yield rest


def _take(event: Any, heard: _Heard, clock: Callable[[], float]) -> None:
    if not isinstance(event, dict):
        raise BadAnswerError("no_stream")
    if "error" in event:
        raise BadAnswerError("said_error")
    if any(_text_of(choice) for choice in _list(event.get("choices"))):
        heard.parts += 1
        if heard.first_at is None:
            heard.first_at = clock()
    heard.tokens = _counted(event) or heard.tokens


def _text_of(choice: Any) -> bool:
    """Whether a part of an answer has words in it: an answer's, or those of a model that thinks aloud first."""
    if not isinstance(choice, dict):
        return False
    delta = choice.get("delta")
    places = [choice.get("text")]
    if isinstance(delta, dict):
        places += [delta.get(name) for name in ("content", "reasoning_content", "reasoning")]
    return any(isinstance(text, str) and text for text in places)


def _counted(event: Mapping[str, Any]) -> int:
    usage = event.get("usage")
    tokens = usage.get("completion_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) and 0 < tokens < 1_000_000 else 0


async def _whole(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MOST_BYTES:
            raise BadAnswerError("too_large")
    return bytes(body)


def _take_whole(body: bytes, heard: _Heard) -> None:
    """From a server that answers in one piece: when its first word was there, nobody knows."""
    answer = _parsed(body)
    if not isinstance(answer, dict) or not _list(answer.get("choices")):
        raise BadAnswerError("no_stream")
    heard.tokens, heard.parts = _counted(answer), 1


def _parsed(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise BadAnswerError("no_stream") from None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
