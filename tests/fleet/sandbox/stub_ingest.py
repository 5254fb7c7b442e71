"""The server's side of the agent protocol in memory: for tests of what agents do when it answers this or that."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from typing import Any

import httpx

JSON = dict[str, Any]


class StubIngest:
    """Keeps samples by key as the database does. `script` may answer a request before the stub does."""

    def __init__(self) -> None:
        self.tokens: dict[str, str] = {}  # agent token -> machine id
        self.enrolment_tokens = {"rre_good"}
        self.enrolled: list[JSON] = []
        self.first_instance_id = 1
        self.samples: dict[tuple[str, float], JSON] = {}
        self.posted = 0
        self.events: list[JSON] = []
        self.batches: list[JSON] = []
        self.heartbeats: list[str] = []
        self.config = {"interval_seconds": 5, "report_seconds": 10, "paused": False}
        self.script: Callable[[httpx.Request], httpx.Response | None] = lambda request: None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        return self.script(request) or self._answer(request)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        content = request.content
        if request.headers.get("Content-Encoding") == "gzip":
            content = gzip.decompress(content)
        body = json.loads(content)
        token = request.headers["Authorization"].removeprefix("Bearer ")
        name = request.url.path.removeprefix("/ingest/v1/")
        if name == "enrol":
            return self._enrol(token, body)
        if token not in self.tokens:
            return httpx.Response(401, json={"error": "bad_token", "detail": "unknown"})
        return {"samples": self._samples, "heartbeat": self._heartbeat}[name](self.tokens[token], body)

    def _enrol(self, token: str, body: JSON) -> httpx.Response:
        if token not in self.enrolment_tokens:
            return httpx.Response(401, json={"error": "bad_token", "detail": "used up"})
        self.enrolled.append(body)
        agent_token = f"rra_{len(self.enrolled)}"
        self.tokens[agent_token] = body["machine_id"]
        instance_id = self.first_instance_id + len(self.enrolled) - 1
        answer = {"instance_id": instance_id, "token": agent_token, "config": self.config}
        return httpx.Response(201, json=answer)

    def _samples(self, machine: str, body: JSON) -> httpx.Response:
        self.batches.append(body)
        self.events += body.get("events", [])
        for sample in body["samples"]:
            for gpu in sample.get("gpus", []):
                self.posted += 1
                self.samples.setdefault((gpu["uuid"], sample["at"]), gpu)
        return httpx.Response(200, json={"accepted": {}, "dropped": {}, "config": self.config})

    def _heartbeat(self, machine: str, body: JSON) -> httpx.Response:
        self.heartbeats.append(machine)
        return httpx.Response(200, json={"config": self.config})


def busy(status: int = 429, retry_after: str = "3") -> httpx.Response:
    return httpx.Response(status, json={"error": "busy", "detail": "later"}, headers={"Retry-After": retry_after})
