from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from config.celery import app
from config.deadman import ping_if_healthy
from config.tasks import ping_deadman


class Service(ThreadingHTTPServer):
    """Stands for the web process and for the monitoring service alike; remembers what was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: list[str] = []
        self.health_status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(self.server.health_status if self.path == "/healthz" else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        """Silent."""


@pytest.fixture
def service():
    with Service() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_it_pings_while_everything_works(service: Service):
    assert ping_if_healthy(web_url=service.url, deadman_url=f"{service.url}/ping/secret")
    assert service.asked == ["/healthz", "/ping/secret"]


def test_it_stays_silent_when_a_part_fails(service: Service):
    service.health_status = 503
    assert not ping_if_healthy(web_url=service.url, deadman_url=f"{service.url}/ping/secret")
    assert service.asked == ["/healthz"]


def test_it_stays_silent_when_the_web_process_is_down(service: Service):
    assert not ping_if_healthy(web_url="http://127.0.0.1:1", deadman_url=f"{service.url}/ping/secret")
    assert service.asked == []


def test_its_address_is_not_logged(service: Service, caplog: pytest.LogCaptureFixture):
    assert not ping_if_healthy(web_url=service.url, deadman_url="http://127.0.0.1:1/ping/secret")
    assert "could not be reached" in caplog.text
    assert "ping/secret" not in caplog.text
    assert ping_if_healthy(web_url=service.url, deadman_url=f"{service.url}/ping/secret")
    assert "ping/secret" not in caplog.text


def test_the_scheduled_task_pings_only_where_an_address_is_set(service: Service, settings):
    assert app.conf.beat_schedule["deadman"]["task"] == ping_deadman.name
    settings.WEB_URL, settings.DEADMAN_URL = service.url, ""
    ping_deadman()
    assert service.asked == []
    settings.DEADMAN_URL = f"{service.url}/ping/secret"
    ping_deadman()
    assert service.asked == ["/healthz", "/ping/secret"]
