"""Code without an event loop reaches what people typed under the same guard, and whatever way an address is written."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path
from threading import Event, Thread

import httpx
import pytest

from fleet.guard import BlockingGuardedTransport, Guard, RefusedAddressError, guarded_client
from tests.agent.certificates import write_certificate
from tests.fleet.test_guard import LOOPBACK, port

__all__ = ["port"]


def answering(monkeypatch, *answers: str) -> list[str]:
    """getaddrinfo gives `made-up.example` these addresses, one after the other; returns the list of the names it was asked for."""
    asked: list[str] = []
    real, left = socket.getaddrinfo, iter(answers)

    def getaddrinfo(host, port, *rest, **more):
        asked.append(host)
        return (
            [(socket.AF_INET, 1, 6, "", (next(left), port))]
            if host == "made-up.example"
            else real(host, port, *rest, **more)
        )

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


def test_it_connects_to_the_address_it_checked_and_resolves_once(monkeypatch, port):
    asked = answering(monkeypatch, "127.0.0.1", "169.254.169.254")
    with guarded_client(LOOPBACK, timeout_seconds=5) as client:
        answer = client.get(f"http://made-up.example:{port}/")
    assert answer.text == f"made-up.example:{port}"
    assert asked.count("made-up.example") == 1


def test_a_name_that_changes_its_mind_is_refused_at_the_second_request(monkeypatch, port):
    answering(monkeypatch, "127.0.0.1", "169.254.169.254")
    with guarded_client(LOOPBACK, timeout_seconds=5) as client:
        client.get(f"http://made-up.example:{port}/")
        with pytest.raises(RefusedAddressError, match="metadata"):
            client.get(f"http://made-up.example:{port}/")


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254", "2852039166", "0xa9fea9fe", "0xa9.0xfe.0xa9.0xfe", "169.254.43518", "169。254。169。254",
        "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "[::169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[64:ff9b:1::a9fe:a9fe]",
        "[2002:a9fe:a9fe::]", "[::ffff:0:a9fe:a9fe]",
    ],
)  # fmt: skip
def test_no_spelling_of_the_metadata_address_gets_through(host):
    everywhere = Guard.of(["0.0.0.0/0", "::/0"])
    with guarded_client(everywhere, timeout_seconds=5) as client, pytest.raises(RefusedAddressError, match="metadata"):
        client.get(f"http://{host}/latest/meta-data/")


@pytest.mark.parametrize("host", ["169.254.169.254.", "0251.0376.0251.0376", "①⑥⑨.254.169.254", "a" * 300 + ".example"])
def test_what_is_neither_a_name_nor_an_address_is_refused(monkeypatch, host):
    def getaddrinfo(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with guarded_client(Guard(), timeout_seconds=5) as client, pytest.raises((RefusedAddressError, httpx.InvalidURL)):
        client.get(f"http://{host}/")


@pytest.mark.parametrize("address", ["fec0::1", "2001:0:7f00:1::1", "::7f00:1", "5f00::1", "2001:db8::1"])
def test_special_ranges_of_ipv6_are_not_public(address):
    with pytest.raises(RefusedAddressError, match="ALLOWED_NETWORKS"):
        Guard().check_url(f"http://[{address}]/")


def test_public_ipv6_is_public():
    Guard().check_url("http://[2606:4700:4700::1111]/")


def test_a_redirect_is_not_followed(port):
    with guarded_client(LOOPBACK, timeout_seconds=5) as client:
        assert client.get(f"http://127.0.0.1:{port}/away").status_code == 302


def test_even_a_client_that_follows_redirects_reaches_no_refused_address(port):
    transport = BlockingGuardedTransport(LOOPBACK)
    with httpx.Client(transport=transport, follow_redirects=True) as client, pytest.raises(RefusedAddressError):
        client.get(f"http://127.0.0.1:{port}/away")


def test_a_name_server_that_does_not_answer_costs_the_connect_timeout_and_no_more(monkeypatch):
    release = Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(30) and [])
    try:
        with guarded_client(Guard(), timeout_seconds=0.05) as client, pytest.raises(httpx.ConnectTimeout):
            client.get("http://made-up.example/")
    finally:
        release.set()


def test_the_certificate_is_checked_for_the_name_that_was_typed(monkeypatch, tmp_path):
    answering(monkeypatch, "127.0.0.1")
    asked_for: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=_greet, args=(listener, write_certificate(tmp_path), asked_for), daemon=True).start()
        url = f"https://made-up.example:{listener.getsockname()[1]}/"
        with guarded_client(LOOPBACK, timeout_seconds=5) as client, pytest.raises(httpx.ConnectError, match="CERT"):
            client.get(url)
    assert asked_for == ["made-up.example"]


def _greet(listener: socket.socket, certificate: tuple[Path, Path], asked_for: list[str]) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.sni_callback = lambda _, name, __: asked_for.append(name)
    accepted, _ = listener.accept()
    with accepted:
        try:
            context.wrap_socket(accepted, server_side=True)
        except OSError:
            return
