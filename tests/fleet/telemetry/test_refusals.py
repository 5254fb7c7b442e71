"""What ingest refuses, and that it says why and where."""

from __future__ import annotations

import asyncio
import gzip
import json
import time

import pytest

from fleet.telemetry.ingest import body as body_module
from fleet.telemetry.models import GpuSample, HostSample
from tests.fleet.telemetry.conftest import batch

pytestmark = pytest.mark.django_db(transaction=True)


def refused(response, status: int, code: str, field: str | None = None) -> bool:
    said = response.json()
    assert (response.status_code, said["error"]) == (status, code), said
    assert said["detail"]
    return field is None or said["field"] == field


@pytest.mark.parametrize("token", ["rra_nobody", "rre_wrong-kind", "", "x" * 5000, "rra_\xff"])
async def test_an_unknown_token(http, token):
    answer = await http.post(
        "/ingest/v1/samples", json=batch(), headers={"Authorization": f"Bearer {token}".encode("latin-1")}
    )
    assert refused(answer, 401, "bad_token")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_no_token(http):
    assert refused(await http.post("/ingest/v1/samples", json=batch()), 401, "bad_token", "Authorization")


async def test_an_address_that_is_none_and_a_method_that_is_not_meant(http):
    assert refused(await http.post("/ingest/v1/nothing", json={}), 404, "not_found")
    assert refused(await http.get("/ingest/v1/samples"), 405, "method_not_allowed")
    assert refused(await http.post("/agent/rackrent-agent.pyz"), 405, "method_not_allowed")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"5", b"\xff\xfe", b"[" * 100_000, b'{"v":' + b"9" * 5000 + b"}"])
async def test_what_is_no_json_object(reporter, data):
    assert refused(await reporter.post("samples", data), 400, "bad_json")


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"v": 2}, "v"),
        ({"sent_at": None}, "sent_at"),
        ({"sent_at": -1}, "sent_at"),
        ({"samples": [{"at": "noon"}]}, "samples[0].at"),
        ({"samples": [{"at": 1.0, "gpus": [{}]}]}, "samples[0].gpus[0]"),
        ({"samples": [{"at": 1.0, "gpus": [{"uuid": "g", "power_watts": "many"}]}]}, "samples[0].gpus[0].power_watts"),
        ({"samples": [{"at": 1.0, "gpus": [{"uuid": "g" * 97}]}]}, "samples[0].gpus[0].uuid"),
        ({"samples": [{"at": 1.0}] * 721}, "samples"),
        ({"samples": [{"at": 1.0, "gpus": [{"uuid": str(n)} for n in range(65)]}]}, "samples[0].gpus"),
        ({"events": [{"at": 1.0, "kind": "xid"}] * 257}, "events"),
        ({"events": [{"at": 1.0, "kind": "DROP TABLE"}]}, "events[0].kind"),
        ({"inventory": [{"uuid": "g", "index": -1}] * 65}, "inventory"),
        ({"environment": {"frameworks": {str(n): "1" for n in range(65)}}}, "environment.frameworks"),
        ({"environment": {"os": "x" * 4097}}, "environment.os"),
    ],
)
async def test_what_the_protocol_does_not_allow_is_named(reporter, fields, where):
    assert refused(await reporter.post("samples", {**batch(), **fields}), 422, "invalid", where)


@pytest.mark.parametrize("uuid", ["GPU-\x1b[31m", "GPU\n", "ГПУ", "\u202egpu"])
async def test_a_uuid_is_printable_ascii(reporter, uuid):
    answer = await reporter.samples({"at": time.time(), "gpus": [{"uuid": uuid}]})
    assert refused(answer, 422, "invalid", "uuid")


async def test_a_body_that_is_too_large_compressed(reporter):
    assert refused(await reporter.post("samples", b" " * ((2 << 20) + 1)), 413, "too_large")


async def test_a_body_that_grows_too_large_is_never_held_in_memory(reporter):
    bomb = gzip.compress(b" " * (17 << 20))
    assert len(bomb) < 20_000
    assert refused(await reporter.post("samples", bomb, **{"Content-Encoding": "gzip"}), 413, "too_large")


async def test_a_large_body_within_the_limits_is_taken(reporter):
    wide = {"at": time.time(), "host": {"load1": 1.0}, "ignored": "x" * (1 << 20)}
    answer = await reporter.post("samples", batch(wide), compressed=True)
    assert answer.json()["accepted"]["host"] == 1


EMPTY_OBJECT = gzip.compress(b"{}", mtime=0)


@pytest.mark.parametrize("data", [b"plain", EMPTY_OBJECT[:-4], EMPTY_OBJECT + b"more"], ids=["plain", "cut", "longer"])
async def test_gzip_that_is_none(reporter, data):
    assert refused(await reporter.post("samples", data, **{"Content-Encoding": "gzip"}), 400, "bad_json")


async def test_another_encoding_is_named(reporter):
    answer = await reporter.post("samples", b"{}", **{"Content-Encoding": "br"})
    assert refused(answer, 400, "bad_json", "Content-Encoding")


async def test_a_client_that_never_finishes_is_not_waited_for(ingest, reporter, monkeypatch):
    monkeypatch.setattr(body_module, "READ_SECONDS", 0.01)
    parts = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive():
        if not parts:
            await asyncio.Event().wait()
        return parts.pop()

    answers = []

    async def send(message):
        answers.append(message)

    scope = {
        "type": "http",
        "path": "/ingest/v1/samples",
        "method": "POST",
        "headers": [(b"authorization", f"Bearer {reporter.token}".encode())],
    }
    await ingest(scope, receive, send)
    assert answers[0]["status"] == 400
    assert "not complete" in json.loads(answers[1]["body"])["detail"]


async def test_nothing_of_a_refused_batch_is_kept(reporter):
    good = {"at": time.time(), "host": {"load1": 1.0}, "gpus": [{"uuid": "GPU-a", "power_watts": 1.0}]}
    await reporter.post("samples", batch(good, {"at": "noon"}))
    assert (await GpuSample.objects.acount(), await HostSample.objects.acount()) == (0, 0)
