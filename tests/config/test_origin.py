"""A page of another port or scheme of this host is another site's, though the browser sends it the same cookies."""

from __future__ import annotations

import pytest

from config.origin import SameOrigin


async def opens(origin: str | None, *, host: str = "localhost:8400", scheme: str = "ws") -> bool:
    reached: list[bool] = []

    async def inside(scope, receive, send):
        reached.append(True)

    browser = iter([{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1006}])

    async def receive():
        return next(browser)

    async def send(message):
        assert message["type"] == "websocket.close"

    headers = [(b"host", host.encode())]
    if origin is not None:
        headers.append((b"origin", origin.encode()))
    await SameOrigin(inside)({"type": "websocket", "scheme": scheme, "headers": headers}, receive, send)
    return bool(reached)


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:8400", True),
        ("http://localhost:8401", False),
        ("http://localhost", False),
        ("https://localhost:8400", False),
        ("http://127.0.0.1:8400", False),
        ("http://localhost.evil.example:8400", False),
        ("http://localhost:99999", False),
        ("null", False),
        ("", False),
        (None, False),
    ],
)
async def test_without_a_public_url_it_is_the_origin_of_the_request(origin, allowed, settings):
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = "", ["localhost"]
    assert await opens(origin) is allowed


async def test_a_host_that_is_not_ours_is_no_measure(settings):
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = "", ["localhost"]
    assert not await opens("http://evil.example", host="evil.example")


async def test_tls_in_front_of_the_server_counts(settings):
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = "", ["localhost"]
    assert await opens("https://localhost", host="localhost", scheme="wss")
    assert not await opens("http://localhost", host="localhost", scheme="wss")


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://rackrent.example", True),
        ("https://rackrent.example:443", True),
        ("https://rackrent.example:8443", False),
        ("http://rackrent.example", False),
        ("http://localhost:8400", False),
    ],
)
async def test_with_a_public_url_only_that_counts(origin, allowed, settings):
    settings.PUBLIC_URL, settings.ALLOWED_HOSTS = "https://rackrent.example", ["rackrent.example", "localhost"]
    assert await opens(origin) is allowed
