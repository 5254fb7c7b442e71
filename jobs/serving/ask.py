"""One look at a server through SSH: its health, its models, its page of metrics, and how much memory it has. No database.

Whatever answers on the machine is somebody else's: every answer is bounded in time and size.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import httpx

from fleet.guard import Guard, RefusedAddressError
from fleet.inventory.remote import RemoteError, SshAddress, ThroughSsh, open_ssh
from fleet.telemetry.scrape import fetch
from fleet.telemetry.scrape.fetch import FetchError, fetch_text
from jobs.book.serving import Serving
from jobs.runner.machine import Machine, RunnerError

CONNECT_SECONDS = 20.0
HEALTH_SECONDS = 8.0
ANSWER_BYTES = 64 * 1024
# As it becomes ready: the second and third show whether the first had to load something.
SHORT_ANSWERS, SHORT_ANSWER_SECONDS = 3, 120.0
MOST_MODELS = 16


@dataclass(frozen=True, slots=True)
class Question:
    """`is_new`: it was not ready yet, so that its models are asked for and short answers are taken. `metrics_path` "": nobody needs them."""

    marker: str
    serving: Serving
    addresses: Sequence[tuple[SshAddress, str]]
    private_key: str = field(repr=False)
    is_new: bool = True
    metrics_path: str = "/metrics"


@dataclass(frozen=True, slots=True)
class Answer:
    """`is_up` None: the machine was not reached (`code` says why). `models` None: it lists none, or was not asked. `page`: of metrics."""

    is_up: bool | None = None
    code: str = ""
    detail: str = ""
    seconds: float | None = None
    models: tuple[str, ...] | None = None
    page: str | None = None
    metrics_code: str = ""
    memory_bytes: int | None = None
    short_answers: tuple[float, ...] = ()


async def ask(question: Question, *, guard: Guard) -> Answer:
    """By the first address that lets us in."""
    answer = Answer(code="not_reached", detail="no_address")
    for address, pinned in question.addresses:
        answer = await _by(question, address, pinned, guard)
        if answer.is_up is not None or answer.detail not in {"unreachable", "timeout", "broken", "refused_address"}:
            break
    return answer


async def _by(question: Question, address: SshAddress, pinned: str, guard: Guard) -> Answer:
    not_reached = Answer(code="not_reached")
    try:
        async with (
            asyncio.timeout(CONNECT_SECONDS) as connecting,
            open_ssh(address, guard=guard, private_key=question.private_key, pinned=pinned) as connection,
        ):
            connecting.reschedule(None)
            memory_bytes = await Machine(connection, question.marker).memory()
            async with httpx.AsyncClient(transport=ThroughSsh(connection), headers=fetch.HEADERS) as client:
                return replace(await look(question, client), memory_bytes=memory_bytes)
    except TimeoutError:
        return replace(not_reached, detail="timeout")
    except RefusedAddressError:
        return replace(not_reached, detail="refused_address")
    except (RemoteError, RunnerError) as error:
        return replace(not_reached, detail=error.code)


async def look(question: Question, client: httpx.AsyncClient) -> Answer:
    answer = await _health(question, client)
    if answer.is_up and question.is_new:
        answer = await _models(question, client, answer)
    if question.metrics_path:
        page, code = await _text(client, _url(question, question.metrics_path, is_metrics=True), fetch.MAX_BYTES)
        answer = replace(answer, page=page, metrics_code=code.partition(" ")[0])
    if answer.is_up and question.is_new:
        taken = await _short_answers(question, client, answer.models or ())
        answer = replace(answer, short_answers=taken)
    return answer


async def _health(question: Question, client: httpx.AsyncClient) -> Answer:
    began = time.monotonic()
    _body, said = await _text(client, _url(question, question.serving.health_path), ANSWER_BYTES)
    code, _, detail = said.partition(" ")
    return Answer(is_up=not code, code=code, detail=detail, seconds=time.monotonic() - began)


async def _models(question: Question, client: httpx.AsyncClient, answer: Answer) -> Answer:
    """A server that lists no models (404) is taken at its health's word; one that lists others than asked for has not loaded it."""
    body, said = await _text(client, _url(question, "/v1/models"), fetch.MAX_BYTES)
    if body is None:
        return answer if said in {"status 404", "status 405"} else replace(answer, is_up=False, code="not_models")
    try:
        names = tuple(str(one["id"])[:200] for one in json.loads(body)["data"][:MOST_MODELS])
    except (ValueError, KeyError, TypeError, RecursionError):
        return replace(answer, is_up=False, code="not_models")
    wanted = question.serving.model
    if not names or (wanted and wanted not in names):
        return replace(answer, models=names, is_up=False, code="no_model", detail=wanted)
    return replace(answer, models=names)


async def _text(client: httpx.AsyncClient, url: str, most_bytes: int) -> tuple[str | None, str]:
    """What it answers, or None and why not: a code, and behind a blank what belongs to it."""
    try:
        text = await fetch_text(client, url, "", deadline_seconds=HEALTH_SECONDS, most_bytes=most_bytes)
    except FetchError as error:
        return None, f"{error.code} {error.detail}".strip()
    except RemoteError as error:
        return None, error.code
    return text, ""


async def _short_answers(question: Question, client: httpx.AsyncClient, models: Sequence[str]) -> tuple[float, ...]:
    """Seconds of requests for one token, one after the other; none where it does not answer such requests."""
    asked = {"model": question.serving.model or next(iter(models), "default"), "prompt": "1", "max_tokens": 1}
    taken: list[float] = []
    try:
        async with asyncio.timeout(SHORT_ANSWER_SECONDS):
            for _number in range(SHORT_ANSWERS):
                began = time.monotonic()
                if not await _is_answered(client, _url(question, "/v1/completions"), asked):
                    return ()
                taken.append(round(time.monotonic() - began, 3))
    except TimeoutError:
        return (*taken, SHORT_ANSWER_SECONDS)
    except (RemoteError, httpx.HTTPError):
        return ()
    return tuple(taken)


async def _is_answered(client: httpx.AsyncClient, url: str, asked: dict[str, Any]) -> bool:
    async with client.stream("POST", url, json=asked) as response:
        size = 0
        async for part in response.aiter_raw():
            size += len(part)
            if size > ANSWER_BYTES:
                return False
        return response.status_code == 200


def _url(question: Question, path: str, *, is_metrics: bool = False) -> str:
    serving = question.serving
    port = serving.metrics_port if is_metrics and serving.metrics_port else serving.port
    return f"http://127.0.0.1:{port}{path}"
