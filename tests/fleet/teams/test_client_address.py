from __future__ import annotations

import pytest
from django.test import RequestFactory

from fleet.teams.addresses import client_ip


def ip_of(**headers):
    return client_ip(RequestFactory().get("/", **headers))


def test_without_a_proxy_nobody_can_choose_their_address():
    assert ip_of(REMOTE_ADDR="127.0.0.1", HTTP_X_FORWARDED_FOR="10.0.0.1") == "127.0.0.1"


@pytest.mark.parametrize(
    ("remote", "forwarded", "address"),
    [
        ("127.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "10.9.9.9, 203.0.113.9", "203.0.113.9"),
        ("127.0.0.1", "203.0.113.9, 10.1.0.3", "203.0.113.9"),
        ("127.0.0.1", "2001:db8::7", "2001:db8::7"),
        ("127.0.0.1", "<script>", "127.0.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("", "203.0.113.9", "203.0.113.9"),
        ("198.51.100.4", "10.9.9.9", "198.51.100.4"),
    ],
)
def test_behind_a_proxy_only_what_a_trusted_hop_wrote_counts(settings, remote, forwarded, address):
    settings.BEHIND_PROXY = True
    settings.TRUSTED_PROXIES = ["127.0.0.1", "10.1.0.0/16"]
    assert ip_of(REMOTE_ADDR=remote, HTTP_X_FORWARDED_FOR=forwarded) == address


def test_a_unix_socket_has_no_address():
    assert ip_of(REMOTE_ADDR="") is None
