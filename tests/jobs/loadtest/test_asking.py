"""One request to an OpenAI-compatible server, as its client sees it."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any

import httpx
import pytest

from jobs.loadtest.asking import MOST_BYTES, Question, ask, prompt_of
from tests.jobs.loadtest.engine import Watched, engine


def question_to(server: Watched, **more) -> Question:
    fields: dict[str, Any] = {"model": "org/tiny", "prompt_tokens": 50, "answer_tokens": 8, "request_seconds": 20.0}
    return Question(base=f"http://127.0.0.1:{server.port}", metrics_url="", **(fields | more))


async def asked(question: Question, number: int = 1):
    async with httpx.AsyncClient(trust_env=False) as client:
        return await ask(client, question, number, clock=monotonic)


async def of_bytes(kind: str, *parts: bytes, status: int = 200, seconds: float = 20.0):
    """What becomes of a server that answers so."""

    async def body():
        for part in parts:
            yield part

    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, headers={"content-type": kind}, content=body())

    question = Question("http://127.0.0.1:1", "", "m", 5, 5, seconds)
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        return await ask(client, question, 1, clock=monotonic)


async def test_times_and_tokens_of_a_stream(server):
    server.options.prefill_seconds, server.options.token_seconds = 0.1, 0.02
    sample = await asked(question_to(server))
    assert (sample.error, sample.tokens) == ("", 8)
    assert 0.1 <= sample.ttft_seconds <= sample.seconds
    # Seven further tokens at 20 ms each, whatever else this machine does.
    assert sample.tpot_seconds >= 0.019
    assert server.bodies[0]["max_tokens"] == 8
    assert server.bodies[0]["stream"] is True


async def test_the_key_is_sent_and_shown_nowhere(server):
    server.key = "sk-verysecret"
    assert (await asked(question_to(server))).error == "key"
    question = question_to(server, key="sk-verysecret")
    assert (await asked(question)).error == ""
    assert "sk-verysecret" not in repr(question)


@pytest.mark.parametrize(
    ("status", "error"),
    [(404, "http_404"), (429, "http_429"), (422, "http_4xx"), (503, "http_5xx"), (302, "redirect"), (307, "redirect")],
)
async def test_what_is_no_answer_is_told_by_its_kind_and_no_redirect_is_followed(server, status, error):
    server.status = status
    assert (await asked(question_to(server))).error == error
    assert server.paths == ["/v1/chat/completions"]


async def test_nobody_listens():
    with engine() as gone:
        pass
    assert (await asked(question_to(gone))).error == "broken"


async def test_a_server_that_is_silent_is_given_up(server):
    server.options.prefill_seconds = 3
    sample = await asked(question_to(server, request_seconds=0.3))
    assert sample.error == "timeout"
    assert sample.seconds < 3


EVENT = b'data: {"choices": [{"delta": {"content": "x"}}]}\n\n'


@pytest.mark.parametrize(
    ("kind", "parts", "error"),
    [
        ("text/event-stream", [b"data: nonsense\n\n"], "no_stream"),
        ("text/event-stream", [b"data: [1]\n\n"], "no_stream"),
        ("text/event-stream", [b'data: {"choices": 7}\n\n'], "empty"),
        ("text/event-stream", [b'data: {"choices": [null, {"delta": 1}, {"delta": {"content": 3}}]}\n\n'], "empty"),
        ("text/event-stream", [EVENT, b'data: {"error": {"message": "out of memory"}}\n\n'], "said_error"),
        ("text/event-stream", [b"data: " + b"[" * 200_000 + b"\n\n"], "no_stream"),
        ("text/event-stream", [b"x" * 300_000], "too_large"),
        ("text/event-stream", [EVENT * 1_000] * (MOST_BYTES // (len(EVENT) * 1_000) + 2), "too_large"),
        ("text/event-stream", [], "empty"),
        ("application/json", [b"{}"], "no_stream"),
        ("application/json", [b'"choices"'], "no_stream"),
        ("application/json", [b"x" * 1_000_000] * 9, "too_large"),
        ("text/html", [b"<h1>hello</h1>"], "no_stream"),
    ],
)
async def test_whatever_a_server_sends_is_bounded_and_told(kind, parts, error):
    assert (await of_bytes(kind, *parts)).error == error


async def test_a_stream_that_is_cut_anywhere_is_read_alike():
    whole = b": comment\r\n" + EVENT * 3 + b'data: {"choices":[],"usage":{"completion_tokens":5}}\n\ndata: [DONE]\n\n'
    for size in (1, 7, 64, len(whole)):
        parts = [whole[place : place + size] for place in range(0, len(whole), size)]
        sample = await of_bytes("text/event-stream", *parts)
        assert (sample.error, sample.tokens) == ("", 5)


async def test_a_server_that_answers_in_one_piece_has_no_first_token():
    sample = await of_bytes("application/json", b'{"choices": [{"message": {}}], "usage": {"completion_tokens": 4}}')
    assert (sample.error, sample.tokens, sample.ttft_seconds) == ("", 4, None)


async def test_it_can_be_cancelled(server):
    server.options.prefill_seconds = 3
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await asked(question_to(server))


def test_no_two_prompts_begin_alike_and_each_is_as_long_as_asked():
    prompts = [prompt_of(number, 40) for number in range(50)]
    assert len({prompt.split()[0] for prompt in prompts}) == 50
    assert {len(prompt.split()) for prompt in prompts} == {39}
