"""Ingest as it runs in the web process, called in memory: real database, real group commit, no server socket."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.db import connections
from django.test import Client

from fleet.inventory.models import Instance, ProviderAccount
from fleet.teams.secrets import new_token
from fleet.telemetry.enrolment import create_enrolment_token
from fleet.telemetry.ingest.app import Ingest
from fleet.telemetry.models import Agent
from tests.fleet.telemetry.browsers import OWN, Page
from tests.fleet.telemetry.enrolling import ACTOR


@dataclass
class Reporter:
    """An agent's side of the wire."""

    client: httpx.AsyncClient
    token: str
    agent: Agent

    async def post(self, path: str, body: Any, *, compressed: bool = False, **headers: str) -> httpx.Response:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if compressed:
            data, headers = gzip.compress(data), {**headers, "Content-Encoding": "gzip"}
        sent = {"Authorization": f"Bearer {self.token}", **headers}
        return await self.client.post(f"/ingest/v1/{path}", content=data, headers=sent)

    async def samples(self, *samples: dict[str, Any], **fields: Any) -> httpx.Response:
        return await self.post("samples", batch(*samples, **fields))


def batch(*samples: dict[str, Any], **fields: Any) -> dict[str, Any]:
    told = {"v": 1, "agent_version": "0.1.0", "boot_id": "b1", "seq": 1, "sent_at": time.time()}
    return {**told, "samples": list(samples), **fields}


@pytest.fixture
async def no_connection_left() -> AsyncIterator[None]:
    """Asynchronous tests reach Django's database from a thread, whose connection nobody else closes."""
    yield
    await sync_to_async(connections.close_all)()


@pytest.fixture
async def page_of(no_connection_left) -> AsyncIterator[Any]:
    pages: list[Page] = []

    async def open_page(user=None, origin: str = OWN) -> Page:
        cookies = ""
        if user is not None:
            browser = Client()
            await sync_to_async(browser.force_login)(user, backend="django.contrib.auth.backends.ModelBackend")
            cookies = f"sessionid={browser.cookies['sessionid'].value}"
        pages.append(Page(cookies, origin))
        return pages[-1]

    yield open_page
    for page in pages:
        await page.disconnect()


@pytest.fixture
async def ingest(no_connection_left: None) -> AsyncIterator[Ingest]:
    application = Ingest()
    await application.start()
    yield application
    await application.stop()


@pytest.fixture
async def http(ingest: Ingest) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(ingest)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


def enrolled(instance: Instance) -> tuple[Agent, str]:
    token = new_token("rra")
    return Agent.objects.create(instance=instance, token_hash=token.hash, prefix=token.prefix), token.secret


@pytest.fixture
def reporter_for(http: httpx.AsyncClient):
    """reporter_for(instance) speaks as the agent of that machine."""

    async def make(instance: Instance) -> Reporter:
        agent, secret = await sync_to_async(enrolled)(instance)
        return Reporter(http, secret, agent)

    return make


@pytest.fixture
async def machine(make_instance):
    """A machine of acme with one GPU, `GPU-a`, which every test may name."""
    instance = await sync_to_async(make_instance)(gpus=1)
    await instance.gpus.aupdate(uuid="GPU-a")
    return instance


@pytest.fixture
async def reporter(machine, reporter_for):
    return await reporter_for(machine)


@pytest.fixture
def token_for(acme):
    """token_for(max_uses=3) is the secret of a new enrolment token of acme."""

    def make(**fields) -> str:
        return create_enrolment_token(actor=ACTOR, team=acme, **fields)[1].secret

    return make


@pytest.fixture
def listed(acme):
    """listed("i-1") is a machine that a provider of acme lists."""
    cloud = ProviderAccount.objects.create(team=acme, kind="aws", name="Cloud")

    def make(external_id: str, **fields) -> Instance:
        values = {"team": acme, "account": cloud, "name": f"aws {external_id}", "state": "running", **fields}
        return Instance.objects.create(external_id=external_id, **values)

    return make


@pytest.fixture
def token_for_async(token_for):
    return sync_to_async(token_for)
