"""GET /api/v1/metrics/: who gets it, how it is packed, and that it costs the same queries however large the fleet."""

from __future__ import annotations

import gzip

import httpx
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.telemetry.models import MachineEvent
from tests.fleet.telemetry.giving.conftest import give_reading

ADDRESS = "/api/v1/metrics/"


@pytest.fixture
def fresh(machine):
    """The machine, read just now by the real clock."""
    for gpu in machine.gpus.all():
        give_reading(gpu, now=timezone.now())
    return machine


def asking(secret: str, **headers: str) -> Client:
    return Client(headers={"Authorization": f"Bearer {secret}", **headers})


def test_a_token_gets_its_team(fresh, acme, rival, bearer):
    answer = asking(bearer(acme)).get(ADDRESS)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.headers["Cache-Control"] == "no-store"
    assert b"DCGM_FI_DEV_GPU_UTIL" in answer.getvalue()
    assert asking(bearer(rival)).get(ADDRESS).getvalue() == b""


def test_strangers_get_json_that_says_why(fresh):
    answer = Client(headers={"Accept": "application/openmetrics-text;version=1.0.0"}).get(ADDRESS)
    assert (answer.status_code, answer.headers["Content-Type"]) == (401, "application/json")


def test_a_prometheus_that_wants_it_packed_gets_it_packed(fresh, acme, bearer):
    secret = bearer(acme)
    packed = asking(secret, Accept_Encoding="gzip").get(ADDRESS)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert b"DCGM_FI_DEV_GPU_UTIL" in gzip.decompress(packed.getvalue())


def test_an_unknown_parameter_is_refused(acme, bearer):
    assert asking(bearer(acme)).get(ADDRESS, {"instance": "7"}).status_code == 400


def test_a_person_sees_the_teams_they_are_in(fresh, alice, charlie, as_user):
    assert b"train-01" in as_user(alice).get(ADDRESS).getvalue()
    assert as_user(charlie).get(ADDRESS).getvalue() == b""
    assert as_user(charlie).get(ADDRESS, {"team": "acme"}).status_code == 404


@pytest.mark.django_db(transaction=True)
async def test_the_server_sends_it_in_pieces(fresh, acme, bearer, monkeypatch, no_connection_left):
    from asgiref.sync import sync_to_async
    from django.core.asgi import get_asgi_application

    from fleet.telemetry.giving import text

    monkeypatch.setattr(text, "PIECE_LINES", 2)
    secret = await sync_to_async(bearer)(acme)
    sent: list[bytes] = []

    async def counting(scope, receive, send):
        async def note(message):
            sent.append(message.get("body", b""))
            await send(message)

        await get_asgi_application()(scope, receive, note)

    transport = httpx.ASGITransport(counting)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        answer = await client.get(ADDRESS, headers={"Authorization": f"Bearer {secret}", "Accept-Encoding": "identity"})
    assert "DCGM_FI_DEV_GPU_UTIL" in answer.text
    assert len([piece for piece in sent if piece]) > 5


def test_a_larger_fleet_costs_no_more_queries(fresh, acme, bearer, make_instance):
    client = asking(bearer(acme))

    def ask() -> tuple[int, int]:
        with CaptureQueriesContext(connection) as queries:
            page = client.get(ADDRESS).getvalue()
        return page.count(b"\nDCGM_FI_DEV_GPU_UTIL{"), len(queries)

    client.get(ADDRESS)
    series, queries = ask()
    for number in range(3):
        more = make_instance(name=f"more-{number}", gpus=2)
        for gpu in more.gpus.all():
            give_reading(gpu, now=timezone.now())
            MachineEvent.objects.create(instance=more, gpu=gpu, at=timezone.now(), kind="xid", code=79)
    more_series, more_queries = ask()
    assert (series, more_series) == (2, 8)
    # Token; machines with their GPUs, hosts, agents, exporters; readings, hosts, states, XIDs, costs; counters of money, budgets.
    assert more_queries == queries <= 15
