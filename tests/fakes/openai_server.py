"""A stand-in for a serving engine: OpenAI's API over HTTP with streaming, health, models, and metrics in an engine's own form. Standard library only.

It has slots, in which requests are computed token by token, and a queue before them, as engines with continuous batching have; and knobs for what
goes wrong with servers. `python -m tests.fakes.openai_server --port 8000 --engine vllm …`
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.serving_metrics import Metrics

METRICS_PATHS = {"vllm": "/metrics", "tgi": "/metrics", "trtllm": "/prometheus/metrics", "triton": "/metrics"}
# Of text in a request, so many letters are a token.
LETTERS = 4


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


@dataclass
class Engine:
    """`options`: what `arguments` parsed."""

    options: argparse.Namespace
    metrics: Metrics
    is_loaded: threading.Event = field(default_factory=threading.Event)
    leaked: list[bytearray] = field(default_factory=list)
    cached: list[bytearray] = field(default_factory=list)
    served: int = 0

    def __post_init__(self) -> None:
        self.slots = threading.Semaphore(self.options.slots)
        self.tokens_held = 0

    def load(self) -> None:
        """As vLLM tells of it."""
        say("INFO Starting to load model org/tiny...")
        time.sleep(self.options.load_seconds)
        say("Loading safetensors checkpoint shards: 100% Completed | 2/2 [00:01<00:00,  1.61it/s]")
        say(f"INFO Model loading took 14.9596 GiB and {self.options.load_seconds:.6f} seconds")
        self.is_loaded.set()

    def generate(self, prompt_tokens: int, wanted: int) -> Iterator[str]:
        """A word for each token, at the engine's pace. Whoever hangs up is counted as aborted. Raises TimeoutError where no slot becomes free in time."""
        arrived = time.monotonic()
        self._wait_for_slot(arrived, prompt_tokens)
        first, made = 0.0, 0
        try:
            if self.options.load_each:
                self.load()
            time.sleep(self.options.prefill_seconds)
            while made < wanted:
                time.sleep(self.options.token_seconds)
                made += 1
                first = first or time.monotonic() - arrived
                yield f"word{made} "
        finally:
            self._leaves_slot(prompt_tokens)
            whole = time.monotonic() - arrived
            self.metrics.finish(
                ttft=first or whole,
                tpot=(whole - first) / (made - 1) if made > 1 else 0.0,
                prompt=prompt_tokens,
                generated=made,
                reason="length" if made == wanted else "abort",
            )
            self._keeps()

    def _wait_for_slot(self, arrived: float, tokens: int) -> None:
        with self.metrics.lock:
            self.metrics.waiting += 1
        has_slot = self.slots.acquire(timeout=self.options.timeout_seconds)
        with self.metrics.lock:
            self.metrics.waiting -= 1
            self.metrics.running += has_slot
            self._hold(tokens if has_slot else 0)
        if not has_slot:
            waited = time.monotonic() - arrived
            self.metrics.finish(ttft=waited, tpot=0.0, prompt=tokens, generated=0, reason="abort")
            raise TimeoutError

    def _leaves_slot(self, tokens: int) -> None:
        with self.metrics.lock:
            self.metrics.running -= 1
            self._hold(-tokens)
        self.slots.release()

    def _hold(self, tokens: int) -> None:
        self.tokens_held += tokens
        self.metrics.cache = min(1.0, self.tokens_held / self.options.cache_tokens)

    def _keeps(self) -> None:
        """What it has after a request that it had not before."""
        options = self.options
        self.served += 1
        if options.leak_bytes:
            self.leaked.append(bytearray(os.urandom(1) * options.leak_bytes))
        if options.cache_bytes and len(self.cached) * options.cache_bytes < options.cache_most_bytes:
            self.cached.append(bytearray(os.urandom(1) * options.cache_bytes))
        if options.crash_after and self.served >= options.crash_after:
            say("CUDA error: an illegal memory access was encountered")
            os._exit(3)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    engine: Engine

    def do_GET(self) -> None:
        options = self.engine.options
        if self.path == "/health":
            self._health()
        elif self.path == "/v1/models" and options.lists_models:
            self._answer(
                200, {"object": "list", "data": [{"id": options.model, "object": "model", "owned_by": "vllm"}]}
            )
        elif self.path == METRICS_PATHS[options.engine]:
            self._send(200, self.engine.metrics.page(options.engine).encode(), "text/plain; version=0.0.4")
        else:
            self._answer(404, {"error": {"message": "Not Found"}})

    def _health(self) -> None:
        options = self.engine.options
        if options.hang_after and self.engine.served >= options.hang_after:
            self._answer(500, {"error": {"message": "EngineDeadError"}})
        elif self.engine.is_loaded.is_set():
            self._send(200, b"", "text/plain")
        else:
            self._answer(503, {"error": {"message": "Loading model"}})

    def do_POST(self) -> None:
        try:
            asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        except ValueError:
            return self._answer(400, {"error": {"message": "no JSON"}})
        if self.path not in {"/v1/completions", "/v1/chat/completions"}:
            return self._answer(404, {"error": {"message": "Not Found"}})
        if asked.get("model") != self.engine.options.model:
            return self._answer(404, {"error": {"message": f"The model `{asked.get('model')}` does not exist."}})
        if not self.engine.is_loaded.is_set():
            return self._answer(503, {"error": {"message": "Loading model"}})
        try:
            self._complete(asked)
        except TimeoutError:
            say(
                f'INFO:     {self.client_address[0]}:{self.client_address[1]} - "POST {self.path} HTTP/1.1" 504 Gateway Timeout'
            )
            self._answer(504, {"error": {"message": "Request timed out waiting for a slot"}})
        except OSError:
            self.close_connection = True

    def _complete(self, asked: dict[str, Any]) -> None:
        text = asked.get("prompt") or "".join(str(message.get("content", "")) for message in asked.get("messages", []))
        prompt, wanted = max(1, len(text) // LETTERS), int(asked.get("max_tokens") or 16)
        words = self.engine.generate(prompt, wanted)
        usage = {"prompt_tokens": prompt, "completion_tokens": wanted, "total_tokens": prompt + wanted}
        if asked.get("stream"):
            self._stream(words, usage, is_chat=self.path.endswith("chat/completions"))
        else:
            choice = self._choice("".join(words), is_chat=self.path.endswith("chat/completions"))
            self._answer(
                200, {"object": "text_completion", "model": asked["model"], "choices": [choice], "usage": usage}
            )
        say(f'INFO:     {self.client_address[0]}:{self.client_address[1]} - "POST {self.path} HTTP/1.1" 200 OK')

    def _choice(self, text: str, *, is_chat: bool) -> dict[str, Any]:
        said = {"message": {"role": "assistant", "content": text}} if is_chat else {"text": text}
        return {"index": 0, "finish_reason": "length", **said}

    def _stream(self, words: Iterator[str], usage: dict[str, int], *, is_chat: bool) -> None:
        """Server-sent events. The status is sent with the first token, as engines do: until then it may still be an error."""
        first = next(words)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for word in itertools.chain([first], words):
            self._event(self._delta(word, is_chat=is_chat))
        self._event(json.dumps({"choices": [], "usage": usage}))
        self._event("[DONE]")
        self._chunk(b"")

    def _delta(self, word: str, *, is_chat: bool) -> str:
        said = {"delta": {"content": word}} if is_chat else {"text": word}
        return json.dumps(
            {"model": self.engine.options.model, "choices": [{"index": 0, **said, "finish_reason": None}]}
        )

    def _event(self, data: str) -> None:
        self._chunk(f"data: {data}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_said: Any) -> None:
        """Said by `_complete`, as uvicorn says it."""


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--engine", choices=METRICS_PATHS, default="vllm")
    parser.add_argument("--model", default="org/tiny")
    parser.add_argument("--slots", type=int, default=8, help="1 is a server that computes one request after the other")
    parser.add_argument("--prefill-seconds", type=float, default=0.005)
    parser.add_argument("--token-seconds", type=float, default=0.001)
    parser.add_argument("--load-seconds", type=float, default=0.0)
    parser.add_argument("--load-each", action="store_true", help="load the model for every request")
    parser.add_argument("--timeout-seconds", type=float, default=60.0, help="how long a request waits for a slot")
    parser.add_argument("--leak-bytes", type=int, default=0, help="kept of every request, for ever")
    parser.add_argument("--cache-bytes", type=int, default=0, help="kept of every request, up to --cache-most-bytes")
    parser.add_argument("--cache-most-bytes", type=int, default=0)
    parser.add_argument("--cache-tokens", type=int, default=100_000, help="tokens that the KV cache holds")
    parser.add_argument("--crash-after", type=int, default=0, help="requests")
    parser.add_argument("--hang-after", type=int, default=0, help="requests, and its health is an error")
    parser.add_argument("--lists-no-models", dest="lists_models", action="store_false")
    return parser.parse_args(words)


class Server(ThreadingHTTPServer):
    request_queue_size = 256
    daemon_threads = True


def serve(options: argparse.Namespace) -> None:
    engine = Engine(options, Metrics(options.model))
    handler = type("Bound", (Handler,), {"engine": engine})
    server = Server(("127.0.0.1", options.port), handler)
    threading.Thread(target=engine.load, daemon=True).start()
    server.serve_forever()


if __name__ == "__main__":
    serve(arguments(sys.argv[1:]))
