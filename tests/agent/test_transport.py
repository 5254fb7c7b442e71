"""How the dashboard is reached: TLS, a CA of one's own, proxies, kept connections, no token where it does not belong."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.transport import AddressError, Dashboard, TransportError, checked_address, proxy_for
from tests.agent.certificates import write_certificate
from tests.agent.stub_dashboard import StubDashboard


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[StubDashboard]:
    stub = StubDashboard(certificate=write_certificate(tmp_path))
    yield stub
    stub.close()


def post(dashboard: Dashboard) -> int:
    try:
        return dashboard.post("/ingest/v1/heartbeat", b"{}").status
    finally:
        dashboard.close()


def test_a_given_authority_is_trusted(secure: StubDashboard, tmp_path: Path) -> None:
    assert post(Dashboard(secure.url, "rra_x", ca_file=str(tmp_path / "dashboard.crt"))) == 200
    assert secure.tokens == ["rra_x"]


def test_another_authority_is_not(secure: StubDashboard, tmp_path: Path) -> None:
    other, _ = write_certificate(tmp_path, "other")
    with pytest.raises(TransportError, match="CERTIFICATE_VERIFY_FAILED"):
        post(Dashboard(secure.url, "rra_x", ca_file=str(other)))
    with pytest.raises(TransportError, match="CERTIFICATE_VERIFY_FAILED"):
        post(Dashboard(secure.url, "rra_x"))
    assert secure.tokens == []


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host",
        "rackrent.example",
        "https://",
        "https://user:pw@host",
        "https://host/?token=1",
        "http://198.51.100.1",
    ],
)
def test_addresses_that_no_token_may_go_to(url: str) -> None:
    with pytest.raises(AddressError):
        checked_address(url, allow_http=False)


def test_plain_http_beyond_this_machine_only_when_asked_for() -> None:
    assert checked_address("http://198.51.100.1:8000", allow_http=True).port == 8000
    assert checked_address("http://127.0.0.1:8000", allow_http=False).hostname == "127.0.0.1"


def test_a_path_before_the_dashboards_own_is_kept(dashboard: StubDashboard) -> None:
    one = Dashboard(f"{dashboard.url}/rackrent/", "rra_x")
    assert post(one) == 200
    assert dashboard.paths == ["/rackrent/ingest/v1/heartbeat"]


def test_one_connection_serves_many_requests_and_a_closed_one_is_replaced(dashboard: StubDashboard) -> None:
    one = Dashboard(dashboard.url, "rra_x")
    for _ in range(3):
        one.post("/ingest/v1/heartbeat", b"{}")
    assert dashboard.connections == 1
    assert one._connection is not None
    assert one._connection.sock is not None
    # What a server does to a connection that was idle for long
    one._connection.sock.shutdown(socket.SHUT_RDWR)
    assert one.post("/ingest/v1/heartbeat", b"{}").status == 200
    assert dashboard.connections == 2
    one.close()


def test_an_answer_without_end_is_cut_off(dashboard: StubDashboard) -> None:
    dashboard.config = {"filler": "x" * (2 << 20)}
    with pytest.raises(TransportError, match="more than"):
        post(Dashboard(dashboard.url, "rra_x"))


def test_an_answer_that_is_no_json_object_is_an_empty_one(dashboard: StubDashboard) -> None:
    dashboard.config = {}
    one = Dashboard(dashboard.url, "rra_x")
    assert one.post("/ingest/v1/heartbeat", json.dumps({}).encode()).body == {"config": {}}
    one.close()


def test_nothing_listening_is_a_transport_error() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(TransportError, match="refused"):
            post(Dashboard(f"http://127.0.0.1:{free.getsockname()[1]}", "rra_x"))


class Proxy:
    """Notes what it is asked for, and answers as a proxy that forwards nothing."""

    def __init__(self) -> None:
        self.heard = b""
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._socket.close()
        self._thread.join(5)

    def _serve(self) -> None:
        connection, _ = self._socket.accept()
        with connection:
            while b"\r\n\r\n" not in self.heard:
                self.heard += connection.recv(65536)
            connection.sendall(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    one = Proxy()
    yield one
    one.close()


def test_https_goes_through_the_proxy_as_a_tunnel_with_its_credentials(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", f"http://ada:s%40cret@{proxy.address}")
    with pytest.raises(TransportError, match="502"):
        post(Dashboard("https://rackrent.example", "rra_x"))
    assert proxy.heard.startswith(b"CONNECT rackrent.example:443 ")
    assert b"Proxy-Authorization: Basic YWRhOnNAY3JldA==" in proxy.heard
    assert b"rra_x" not in proxy.heard, "the token is for the dashboard, inside the tunnel"


def test_http_goes_through_the_proxy_with_the_whole_address(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://{proxy.address}")
    assert post(Dashboard("http://rackrent.example:8000/base", "rra_x", allow_http=True)) == 502
    assert proxy.heard.startswith(b"POST http://rackrent.example:8000/base/ingest/v1/heartbeat ")


def test_no_proxy_is_honoured_and_this_machine_is_never_proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", ".internal.example")
    assert proxy_for(checked_address("https://a.internal.example", allow_http=False)) is None
    assert proxy_for(checked_address("https://localhost", allow_http=False)) is None
    assert proxy_for(checked_address("https://other.example", allow_http=False)) is not None
