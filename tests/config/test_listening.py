from __future__ import annotations

import os
import pwd
import socket

import pytest

from config.reach import own_hosts, own_url
from config.runtime import ports
from config.runtime.ports import PortError, listen


@pytest.fixture
def taken():
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_it_says_which_process_has_the_port(taken: int):
    with pytest.raises(
        PortError, match=rf"Port {taken} is taken by process {os.getpid()} \(.*RACKRENT_PORT={taken + 1}"
    ):
        listen("127.0.0.1", taken)


def test_it_names_the_user_where_the_process_is_hidden(taken: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ports, "_owner_of", lambda inode: None)
    assert ports.holder(taken) == f"a process of user {pwd.getpwuid(os.geteuid()).pw_name}"


def test_it_says_when_the_machine_has_no_such_address():
    with pytest.raises(PortError, match=r"no address 203.0.113.7.*RACKRENT_HOST"):
        listen("203.0.113.7", 0)


def test_a_port_can_be_had_again_at_once():
    with listen("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        first.accept()[0].close()
        client.close()
    listen("127.0.0.1", port).close()


class TestAcceptedHosts:
    def test_only_this_machine_by_default(self):
        assert own_hosts(public_url="", bind_host="127.0.0.1") == ["localhost", "127.0.0.1", "[::1]"]

    def test_the_public_name_and_the_address_listened_on(self):
        hosts = own_hosts(public_url="https://rackrent.example:8443", bind_host="192.0.2.1")
        assert hosts[3:] == ["rackrent.example", socket.gethostname(), "192.0.2.1"]

    def test_every_address_is_no_name(self):
        assert "0.0.0.0" not in own_hosts(public_url="", bind_host="0.0.0.0")

    def test_an_ipv6_address_is_written_in_brackets(self):
        assert "[2001:db8::1]" in own_hosts(public_url="https://[2001:db8::1]/", bind_host="127.0.0.1")


@pytest.mark.parametrize(
    ("bind_host", "expected"),
    [
        ("127.0.0.1", "http://127.0.0.1:8400"),
        ("0.0.0.0", "http://127.0.0.1:8400"),
        ("::", "http://127.0.0.1:8400"),
        ("::1", "http://[::1]:8400"),
        ("192.0.2.1", "http://192.0.2.1:8400"),
    ],
)
def test_other_processes_here_reach_it(bind_host: str, expected: str):
    assert own_url(bind_host=bind_host, port=8400) == expected


def test_every_address_means_both_families():
    with listen("::", 0) as server:
        socket.create_connection(("127.0.0.1", server.getsockname()[1])).close()
