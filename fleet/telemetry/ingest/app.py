"""The ASGI callable: routes, tokens and answers. What is stored and how lies in the modules beside it."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fleet.meters import meters
from fleet.telemetry.ingest.actions import asked_json, take_action_report
from fleet.telemetry.ingest.agents import KnownAgent
from fleet.telemetry.ingest.answers import Send, config_of, send_file, send_json, send_refusal
from fleet.telemetry.ingest.body import MAX_COMPRESSED_BYTES, BodyReader, ClientGoneError, Headers, Receive, read_body
from fleet.telemetry.ingest.enrol import Door, enrolled_answer
from fleet.telemetry.ingest.errors import (
    BadTokenError,
    NotFoundError,
    RefusalError,
    UnavailableError,
    WrongMethodError,
)
from fleet.telemetry.ingest.heartbeat import take_heartbeat
from fleet.telemetry.ingest.registry import take_facts
from fleet.telemetry.ingest.samples import take_batch
from fleet.telemetry.ingest.service import Service
from fleet.telemetry.ingest.speed import CHUNK_BYTES, DOWN_CHUNKS, Speed, check_asked
from fleet.telemetry.sanitise import Reader
from fleet.telemetry.wire import ActionReport, Batch, Enrolment, Heartbeat

logger = logging.getLogger(__name__)

Scope = Mapping[str, Any]
Answer = Callable[[Scope, Receive, Send], Awaitable[None]]

PREFIXES = ("/ingest/", "/agent/")
ZIPAPP_PATH, INSTALLER_PATH = "/agent/rackrent-agent.pyz", "/agent/install.sh"
# Words of our own for what is counted: whoever asks for an address must not make a series.
ENDPOINTS = {
    "/ingest/v1/samples": "samples",
    "/ingest/v1/heartbeat": "heartbeat",
    "/ingest/v1/enrol": "enrol",
    "/ingest/v1/actions": "actions",
    "/ingest/v1/speed": "speed",
    ZIPAPP_PATH: "zipapp",
    INSTALLER_PATH: "installer",
}
_BATCHES, _HEARTBEATS, _ENROLMENTS = Reader(Batch), Reader(Heartbeat), Reader(Enrolment)
_REPORTS = Reader(ActionReport)


class Ingest:
    """Answers requests under PREFIXES. `start` and `stop` belong into the server's lifespan; without one the first request starts."""

    def __init__(self) -> None:
        self._service: Service | None = None
        self._bodies = BodyReader()
        self._door = Door()
        self._speed = Speed()
        self._routes: dict[str, tuple[tuple[str, ...], Answer]] = {
            "/ingest/v1/samples": (("POST",), self._samples),
            "/ingest/v1/heartbeat": (("POST",), self._heartbeat),
            "/ingest/v1/enrol": (("POST",), self._enrol),
            "/ingest/v1/actions": (("POST",), self._actions),
            "/ingest/v1/speed": (("GET", "POST"), self._move),
            ZIPAPP_PATH: (("GET", "HEAD"), self._zipapp),
            INSTALLER_PATH: (("GET", "HEAD"), self._installer),
        }

    async def start(self) -> Service:
        if self._service is None:
            self._service = Service()
            await self._service.start()
            # The modules and models loaded by now live as long as the process: full collections need not walk them every time.
            gc.collect()
            gc.freeze()
        return self._service

    async def stop(self) -> None:
        service, self._service = self._service, None
        if service is not None:
            await service.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answered = "ok"
        try:
            await self._answer_to(scope)(scope, receive, send)
        except RefusalError as refusal:
            answered = refusal.code
            await send_refusal(send, refusal)
        except ClientGoneError:
            answered = "gone"
        except Exception:
            answered = "error"
            logger.exception("A request to %s failed", scope["path"])
            await send_refusal(send, UnavailableError("Something is wrong here; the log says what. Try again later."))
        finally:
            endpoint = ENDPOINTS.get(scope["path"], "other")
            meters.count("ingest_requests", endpoint=endpoint, answer=answered)

    def _answer_to(self, scope: Scope) -> Answer:
        methods, answer = self._routes.get(scope["path"], ((), None))
        if answer is None:
            raise NotFoundError("There is nothing at this address. See docs/agent-protocol.md.")
        if scope["method"] not in methods:
            raise WrongMethodError(f"Use {' or '.join(methods)} here.")
        return answer

    async def _samples(self, scope: Scope, receive: Receive, send: Send) -> None:
        received_at = time.time()
        service = self._service or await self.start()
        headers: Headers = dict(scope["headers"])
        agent = await _known(service, headers)
        decoded = await self._bodies.read(_BATCHES, receive, headers)
        said = await take_batch(service.pool, service.writer, agent, decoded, received_at=received_at)
        await send_json(send, b'{%b"config":%b}' % (said, config_of(agent, service.files.built)))

    async def _heartbeat(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._service or await self.start()
        headers: Headers = dict(scope["headers"])
        agent = await _known(service, headers)
        decoded = await self._bodies.read(_HEARTBEATS, receive, headers)
        state, asked = await take_heartbeat(service.pool, agent, decoded.value)
        service.publisher.heartbeat(agent.instance_id, state)
        await send_json(send, b'{"config":%b%b}' % (config_of(agent, service.files.built), asked_json(asked)))

    async def _actions(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._service or await self.start()
        headers: Headers = dict(scope["headers"])
        agent = await _known(service, headers)
        decoded = await self._bodies.read(_REPORTS, receive, headers)
        await take_action_report(agent, decoded.value)
        await send_json(send, b"{}")

    async def _move(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._service or await self.start()
        headers: Headers = dict(scope["headers"])
        agent = await _known(service, headers)
        await check_asked(service.pool, agent)
        down = scope["method"] == "GET"
        with self._speed.admitted(agent, CHUNK_BYTES * DOWN_CHUNKS if down else MAX_COMPRESSED_BYTES):
            if down:
                await self._speed.send(send)
            else:
                await read_body(receive, headers)
                await send_json(send, b"{}")

    async def _enrol(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._service or await self.start()
        headers: Headers = dict(scope["headers"])
        token = _bearer(headers)
        decoded = await self._bodies.read(_ENROLMENTS, receive, headers)
        client = scope.get("client")
        enrolled = await self._door.enrol(token, decoded.value, ip_address=client[0] if client else None)
        agent = await service.agents.find(enrolled.token.secret)
        if agent is not None:
            await take_facts(service.pool, agent, decoded.value)
        await send_json(send, enrolled_answer(enrolled, file=service.files.built), status=201)

    async def _zipapp(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._service or await self.start()
        file = await service.files.build()
        await _send(scope, send, file.data, file.sha256, b"application/zip")

    async def _installer(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._service or await self.start()
        script, sha256 = await service.files.installer()
        await _send(scope, send, script, sha256, b"text/x-shellscript; charset=utf-8")


async def _send(scope: Scope, send: Send, data: bytes, sha256: str, content_type: bytes) -> None:
    matches = dict(scope["headers"]).get(b"if-none-match", b"")
    head = scope["method"] == "HEAD"
    await send_file(send, data, sha256=sha256, content_type=content_type, if_none_match=matches, head=head)


async def _known(service: Service, headers: Headers) -> KnownAgent:
    agent = await service.agents.find(_bearer(headers))
    if agent is None:
        raise BadTokenError(
            "This agent's token is unknown or revoked, or its machine is gone. Enrol the machine again."
        )
    return agent


def _bearer(headers: Headers) -> str:
    kind, _, token = headers.get(b"authorization", b"").partition(b" ")
    if kind.lower() != b"bearer" or not token:
        raise BadTokenError("Send the token as `Authorization: Bearer <token>`.", field="Authorization")
    return token.strip().decode("latin-1")
