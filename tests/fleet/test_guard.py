"""Addresses that people type reach public hosts and the operator's own networks, nothing else, and not by a change of mind of DNS."""

from __future__ import annotations

import ipaddress
import socket
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import httpx
import pytest

from fleet.guard import Guard, GuardedTransport, RefusedAddressError

LOOPBACK = Guard.of(["127.0.0.0/8"])


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "0.0.0.0", "10.1.2.3", "192.168.0.9", "172.16.5.5", "100.64.0.1", "169.254.1.1", "224.0.0.1", "255.255.255.255",
        "[::1]", "[fe80::1]", "[fd12::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::]",
    ],
)  # fmt: skip
def test_it_refuses_special_addresses(host):
    with pytest.raises(RefusedAddressError, match="ALLOWED_NETWORKS"):
        Guard().check_url(f"http://{host}:9400/metrics")


@pytest.mark.parametrize("host", ["169.254.169.254", "100.100.100.200", "[fd00:ec2::254]", "[::ffff:169.254.169.254]"])
def test_metadata_services_stay_closed_to_the_operator_too(host):
    with pytest.raises(RefusedAddressError, match="metadata"):
        Guard.of(["0.0.0.0/0", "::/0"]).check_url(f"http://{host}/latest")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/",
        "http://8.8.8.8:99999/",
        "https://example.org:0/",
        "file:///etc/passwd",
        "http://",
        "//example.org",
        "http://a:b@example.org/",
    ],
)
def test_it_refuses_what_is_no_plain_web_address(url):
    with pytest.raises(RefusedAddressError):
        Guard().check_url(url)


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
def test_it_refuses_a_port_that_is_none(port):
    with pytest.raises(RefusedAddressError, match="65535") as refused:
        Guard().check_url(f"http://203.0.114.7:{port}/metrics")
    assert refused.value.code == "port"
    Guard().check_url("http://203.0.114.7:65535/metrics")


def test_it_lets_public_addresses_and_allowed_networks_pass():
    Guard().check_url("https://203.0.114.7/metrics")
    Guard.of(["10.0.0.0/8"]).check_url("http://10.1.2.3:9400/metrics")


def test_one_private_address_refuses_the_whole_name():
    mixed = [ipaddress.ip_address("93.184.216.34"), ipaddress.ip_address("10.0.0.1")]
    with pytest.raises(RefusedAddressError):
        Guard().choose("rebinding.example", mixed)


async def test_a_name_that_resolves_to_loopback_is_refused(monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("127.0.0.1", 80))])
    async with httpx.AsyncClient(transport=GuardedTransport(Guard())) as client:
        with pytest.raises(RefusedAddressError):
            await client.get("http://innocent.example/")


class Echo(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", "http://169.254.169.254/")
            self.end_headers()
            return
        body = self.headers["Host"].encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def port():
    server = HTTPServer(("127.0.0.1", 0), Echo)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


async def test_it_connects_to_the_address_it_checked_and_resolves_once(monkeypatch, port):
    answers = iter([[(2, 1, 6, "", ("127.0.0.1", port))]])
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *rest, **more: next(answers) if host == "exporter.example" else real(host, *rest, **more),
    )
    async with httpx.AsyncClient(transport=GuardedTransport(LOOPBACK)) as client:
        assert (await client.get(f"http://exporter.example:{port}/")).text == f"exporter.example:{port}"


async def test_redirects_are_answers_not_orders(port):
    async with httpx.AsyncClient(transport=GuardedTransport(LOOPBACK)) as client:
        assert (await client.get(f"http://127.0.0.1:{port}/away")).status_code == 302


async def test_the_same_address_is_reached_or_refused_as_the_operator_says(port):
    async with httpx.AsyncClient(transport=GuardedTransport(LOOPBACK)) as client:
        assert (await client.get(f"http://127.0.0.1:{port}/")).status_code == 200
    async with httpx.AsyncClient(transport=GuardedTransport(Guard())) as client:
        with pytest.raises(RefusedAddressError):
            await client.get(f"http://127.0.0.1:{port}/")
