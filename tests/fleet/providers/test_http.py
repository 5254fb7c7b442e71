"""The client of token APIs: what it tries again, what it makes of bad answers, and what never leaves it."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fleet.providers import http as provider_http
from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    NoCapacity,
    NotFound,
    QuotaOrFunds,
    RateLimited,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.http import JsonApi, retry_after

SECRET = "SECRET-key-0123456789"


class Peer(ThreadingHTTPServer):
    answers: list[tuple[int, dict[str, str], bytes]]
    seen: list[tuple[str, str, bytes]]


@pytest.fixture
def peer():
    """`peer.answers` are (status, headers, body), the last one for ever; `peer.seen` the requests."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            server = self.server
            assert isinstance(server, Peer)
            server.seen.append((self.command, self.path, self.rfile.read(length)))
            status, headers, body = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *arguments: object) -> None:
            pass

    server = Peer(("127.0.0.1", 0), Handler)
    server.answers, server.seen = [(200, {}, b"{}")], []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def api(peer, **options) -> JsonApi:
    base_url = f"http://127.0.0.1:{peer.server_address[1]}/v1/"
    headers = {"Authorization": f"Bearer {SECRET}"}
    return JsonApi(label="Acme", base_url=base_url, headers=headers, secrets=[SECRET], **options)


def test_a_read_is_decoded(peer):
    peer.answers = [(200, {}, b'{"pods": [1]}')]
    assert api(peer).get("pods", page="2") == {"pods": [1]}
    assert peer.seen == [("GET", "/v1/pods?page=2", b"")]


def test_an_empty_answer_is_none(peer):
    peer.answers = [(204, {}, b"")]
    assert api(peer).send("DELETE", "pods/1") is None


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_read_is_tried_once_more_when_a_gateway_answers(peer, status):
    peer.answers = [(status, {}, b"<html>"), (200, {}, b"[]")]
    assert api(peer).get("pods") == []
    assert len(peer.seen) == 2


def test_a_read_is_not_tried_for_ever(peer):
    peer.answers = [(503, {}, b"")]
    with pytest.raises(Unavailable, match="Acme answered 503"):
        api(peer).get("pods")
    assert len(peer.seen) == 2


@pytest.mark.parametrize("status", [500, 502, 503])
def test_a_write_is_never_tried_again(peer, status):
    peer.answers = [(status, {}, b"")]
    with pytest.raises(Unavailable):
        api(peer).send("POST", "pods", json={"name": "a"})
    assert len(peer.seen) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, Invalid),
        (401, AuthFailed),
        (402, QuotaOrFunds),
        (403, ScopeMissing),
        (404, NotFound),
        (409, WrongState),
        (410, Unavailable),
        (422, Invalid),
        (429, RateLimited),
        (500, Unavailable),
        (302, Unavailable),
    ],
)
def test_a_status_becomes_our_error_with_the_providers_words(peer, status, error):
    peer.answers = [(status, {"Location": "http://127.0.0.1:9/"}, b'{"error": {"code": "x", "message": "No."}}')]
    with pytest.raises(error, match="No"):
        api(peer).send("POST", "pods")


def test_a_code_of_the_provider_goes_before_the_status(peer):
    peer.answers = [(400, {}, b'{"code": "sold-out", "message": "Nothing left."}')]
    with pytest.raises(NoCapacity, match="Nothing left"):
        api(peer, kinds={"sold-out": NoCapacity}).send("POST", "pods")


@pytest.mark.parametrize("body", [b"<html>busy</html>", b"slow down", b"", b'{"detail": 1}', b"[]"])
def test_a_body_that_is_not_the_apis_own_is_no_crash(peer, body):
    peer.answers = [(429, {"Retry-After": "7"}, body)]
    with pytest.raises(RateLimited) as caught:
        api(peer).get("pods")
    assert caught.value.retry_after == 7


@pytest.mark.parametrize("body", [b"<html>404 page not found</html>", b"", b'{"message": "no Route matched"}'])
@pytest.mark.parametrize("status", [404, 410])
def test_only_the_api_itself_can_say_that_something_does_not_exist(peer, status, body):
    """A gateway's 404 must not end machines that run."""
    peer.answers = [(status, {}, body)]
    with pytest.raises(Unavailable):
        api(peer).get("pods/1")


def test_html_instead_of_json_is_unavailable(peer):
    peer.answers = [(200, {"Content-Type": "text/html"}, b"<html>maintenance</html>")]
    with pytest.raises(Unavailable, match="not JSON"):
        api(peer).get("pods")


def test_an_endless_answer_is_cut(peer, monkeypatch):
    monkeypatch.setattr(provider_http, "MAX_ANSWER_BYTES", 1 << 20)
    peer.answers = [(200, {}, json.dumps("x" * (2 << 20)).encode())]
    with pytest.raises(Unavailable, match="larger than 1 MiB"):
        api(peer).get("pods")


def test_a_key_that_is_echoed_is_masked(peer):
    peer.answers = [(401, {}, json.dumps({"error": {"message": f"bad key {SECRET}"}}).encode())]
    with pytest.raises(AuthFailed) as caught:
        api(peer).get("pods")
    assert SECRET not in caught.value.detail
    assert SECRET not in repr(api(peer))


def test_nobody_there_is_unavailable():
    with pytest.raises(Unavailable, match="does not answer"):
        JsonApi(label="Acme", base_url="http://127.0.0.1:9/").get("pods")


@pytest.mark.parametrize(
    ("word", "seconds"), [("3", 3.0), ("-1", 0.0), ("", None), ("soon", None), ("Mon, 01 Jan 2001 00:00:00 GMT", 0.0)]
)
def test_retry_after_in_seconds_or_as_a_date(word, seconds):
    assert retry_after(word) == seconds


@pytest.mark.parametrize(
    ("word", "seconds"), [("inf", None), ("nan", None), ("1e300", 86_400.0), ("-5", 0.0), ("30", 30.0)]
)
def test_no_pause_that_no_clock_can_hold_comes_through(peer, word, seconds):
    peer.answers = [(429, {"Retry-After": word}, b"")]
    with pytest.raises(RateLimited) as caught:
        api(peer).get("pods")
    assert caught.value.retry_after == seconds
