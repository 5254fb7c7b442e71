"""The sandbox's adapter against the sandbox's own API over a real loopback port, and against answers that are not its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from fleet.providers.base import Billing, InstanceState, Market, Money, Tenancy
from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    InvalidOption,
    NoCapacity,
    NotFound,
    ProviderError,
    QuotaOrFunds,
    RateLimited,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.sandbox import PAGE_SIZE, Sandbox, sandbox_port
from fleet.providers.sandbox_facts import STATES
from fleet.sandbox.desk import Desk
from fleet.sandbox.http_api import SandboxAPI
from fleet.sandbox.rentals import PASSING
from tests.fleet.sandbox.loopback import serving

KEY = "sbk_0123456789-not-to-be-shown"


class Canned(BaseHTTPRequestHandler):
    """Answers every GET with what the test put into the server's `answers`, the last of them for ever."""

    def do_GET(self) -> None:
        answers: list[tuple[int, dict[str, str], bytes]] = self.server.answers  # type: ignore[attr-defined]
        status, headers, body = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def canned(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Canned)
    server.answers = []  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("SANDBOX_PORT", str(server.server_address[1]))
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def answers(canned: ThreadingHTTPServer):
    """answers(200, {...}) adds one to what the provider will say."""

    def add(status: int, content: object = None, *, body: bytes | None = None, **headers: str) -> None:
        text = json.dumps(content).encode() if body is None else body
        canned.answers.append((status, headers, text))  # type: ignore[attr-defined]

    return add


def error(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": "because"}}


def row(**fields: object) -> dict[str, Any]:
    gpu = {"model": "NVIDIA L4", "count": 1, "memory_mib": 23034}
    return {
        "id": "sb-1",
        "name": "one",
        "status": "running",
        "charged": "full",
        "region": "r",
        "gpu": gpu,
        "currency": "USD",
    } | fields


class TestAgainstTheSandbox:
    @pytest.fixture
    def desk(self, tmp_path: Path) -> Desk:
        return Desk(tmp_path / "provider.json", lambda: 1_796_000_000.0)

    @pytest.fixture
    def adapter(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
        with serving(SandboxAPI(desk)) as port:
            monkeypatch.setenv("SANDBOX_PORT", str(port))
            yield Sandbox({"key": desk.read_key})

    def test_it_lists_every_machine_whatever_the_page_size(self, adapter, monkeypatch) -> None:
        for size in (1, 7, PAGE_SIZE):
            monkeypatch.setattr("fleet.providers.sandbox.PAGE_SIZE", size)
            ids = [machine.ref.external_id for machine in adapter.instances()]
            assert len(ids) == len(set(ids)) == 24

    def test_a_machine_is_read_in_our_words(self, adapter) -> None:
        machine = next(machine for machine in adapter.instances() if machine.name == "llm-pre-01")
        assert (machine.ref.external_id, machine.ref.region) == ("sb-0a1c41", "us-south-1")
        assert (machine.state, machine.billing, machine.raw_state) == (InstanceState.RUNNING, Billing.FULL, "running")
        assert (machine.market, machine.tenancy) == (Market.ON_DEMAND, Tenancy.DEDICATED_HOST)
        assert (machine.gpu_model, machine.gpu_count, machine.ram_mib) == ("H100 SXM", 8, 1800 * 1024)
        assert machine.rate == Money(Decimal("23.92"), "USD")
        assert machine.storage_rate == Money(Decimal("0.547945"), "USD")
        assert machine.image_name == "pytorch-train 2.4"
        assert machine.labels == {"project": "atlas-7b", "owner": "Priya Nair"}
        assert machine.ssh[0].user == "ubuntu"
        assert machine.started_at is not None
        assert machine.started_at.utcoffset() is not None

    def test_every_gpu_has_one_of_our_names(self, adapter) -> None:
        assert not [machine.gpu_raw for machine in adapter.instances() if machine.gpu_model == machine.gpu_raw]

    def test_a_stopped_machine_pays_for_its_disk(self, adapter) -> None:
        machine = next(machine for machine in adapter.instances() if machine.name == "g5-dev-01")
        assert (machine.state, machine.billing) == (InstanceState.STOPPED, Billing.STORAGE)
        assert machine.storage_rate
        assert machine.stopped_at

    def test_a_part_of_a_gpu_says_how_much(self, adapter) -> None:
        machine = next(machine for machine in adapter.instances() if machine.tenancy == Tenancy.FRACTION)
        assert machine.host_share == Decimal("0.5")

    def test_a_lease_has_an_end(self, adapter) -> None:
        assert [machine.name for machine in adapter.instances() if machine.expires_at] == ["cn-ft-01"]

    def test_images_are_listed(self, adapter) -> None:
        assert {image.name for image in adapter.images()} > {"vllm-serve 1.1"}

    def test_the_key_is_verified(self, adapter) -> None:
        assert adapter.verify().external_id.startswith("sandbox-")
        with pytest.raises(AuthFailed):
            Sandbox({"key": "sbk_wrong"}).verify()

    def test_every_word_of_the_provider_is_known(self) -> None:
        assert set(PASSING) | {following for _, following in PASSING.values()} == set(STATES)


class TestErrors:
    @pytest.mark.parametrize(
        ("status", "code", "kind"),
        [
            (400, "bad_json", Invalid),
            (401, "bad_key", AuthFailed),
            (402, "quota", QuotaOrFunds),
            (403, "read_only", ScopeMissing),
            (404, "not_found", NotFound),
            (409, "wrong_state", WrongState),
            (409, "no_capacity", NoCapacity),
            (422, "invalid", Invalid),
            (429, "busy", RateLimited),
            (500, "", Unavailable),
            (302, "", Unavailable),
        ],
    )
    def test_answers_become_ours(self, answers, status: int, code: str, kind: type[ProviderError]) -> None:
        answers(status, error(code))
        with pytest.raises(ProviderError) as failed:
            Sandbox({"key": KEY}).verify()
        assert type(failed.value) is kind
        assert "because" in failed.value.detail

    def test_the_wait_that_it_asks_for_is_kept(self, answers) -> None:
        answers(429, error("busy"), **{"Retry-After": "17"})
        with pytest.raises(RateLimited) as failed:
            Sandbox({"key": KEY}).verify()
        assert failed.value.retry_after == 17

    @pytest.mark.parametrize(
        ("status", "body"), [(200, b"<html>"), (500, b"<html>"), (200, b"[]"), (429, b"slow down")]
    )
    def test_an_answer_of_somebody_else_is_no_listing(self, answers, status: int, body: bytes) -> None:
        answers(status, body=body)
        with pytest.raises((Unavailable, RateLimited)):
            list(Sandbox({"key": KEY}).instances())

    def test_nobody_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SANDBOX_PORT", "1")
        with pytest.raises(Unavailable, match="does not answer"):
            Sandbox({"key": KEY}).verify()

    def test_the_key_is_in_no_error(self, answers) -> None:
        answers(500, body=b"broken")
        with pytest.raises(Unavailable) as failed:
            Sandbox({"key": KEY}).verify()
        assert KEY not in repr(failed.value) + failed.value.detail + repr(Sandbox({"key": KEY}))


class TestListing:
    def test_one_that_breaks_off_raises(self, answers) -> None:
        answers(200, {"instances": [row()], "next": "sb-1"})
        answers(503, error("away"))
        with pytest.raises(Unavailable):
            list(Sandbox({"key": KEY}).instances())

    def test_one_that_goes_in_circles_raises(self, answers) -> None:
        answers(200, {"instances": [row()], "next": "sb-1"})
        with pytest.raises(Unavailable, match="does not end"):
            list(Sandbox({"key": KEY}).instances())

    def test_an_empty_one_is_empty(self, answers) -> None:
        answers(200, {"instances": [], "next": None})
        assert list(Sandbox({"key": KEY}).instances()) == []

    def test_a_new_word_becomes_unknown_and_is_kept(self, answers) -> None:
        answers(
            200,
            {"instances": [row(status="hibernating", charged="tears", market="barter", tenancy="loft")], "next": None},
        )
        (machine,) = Sandbox({"key": KEY}).instances()
        assert (machine.state, machine.raw_state) == (InstanceState.UNKNOWN, "hibernating")
        assert (machine.billing, machine.market, machine.tenancy) == (Billing.UNKNOWN, Market.UNKNOWN, Tenancy.UNKNOWN)

    def test_what_it_does_not_say_is_unknown_not_zero(self, answers) -> None:
        answers(200, {"instances": [row(price_per_hour=None, ssh=None, image=None)], "next": None})
        (machine,) = Sandbox({"key": KEY}).instances()
        assert (machine.rate, machine.storage_rate, machine.ssh, machine.image_id) == (None, None, (), "")
        assert machine.ram_mib is None

    @pytest.mark.parametrize(
        "fields",
        [{"gpu": None}, {"price_per_hour": "much"}, {"created_at": "2026-11-30T06:00:00"}, {"started_at": "soon"}],
    )
    def test_a_row_that_is_not_its_own_raises(self, answers, fields: dict[str, object]) -> None:
        answers(200, {"instances": [row(**fields)], "next": None})
        with pytest.raises(Unavailable, match="form that is not its own"):
            list(Sandbox({"key": KEY}).instances())


class TestWhereItIs:
    def test_it_is_next_to_the_web_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("SANDBOX_PORT", raising=False)
        monkeypatch.setenv("RACKRENT_PORT", "9000")
        assert sandbox_port() == 9001

    @pytest.mark.parametrize("word", ["none", "0", "70000"])
    def test_a_setting_that_is_no_port_is_named(self, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
        monkeypatch.setenv("SANDBOX_PORT", word)
        with pytest.raises(Invalid, match="SANDBOX_PORT"):
            sandbox_port()

    @pytest.mark.parametrize("key", ["", "sbk_\n", "ключ"])
    def test_a_key_that_cannot_be_sent_is_refused(self, key: str) -> None:
        with pytest.raises(InvalidOption):
            Sandbox({"key": key})
