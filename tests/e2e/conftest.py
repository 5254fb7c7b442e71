"""Chromium against a real web process that serves config.asgi on the tests' database: pages, sockets and ingest as in production."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from fleet.teams.models import User
from tests.fakes.services import STAND_INS, Service, serving
from tests.fakes.smtp import MailServer, mail_server
from tests.programs import needs

from .chromium import CHROMIUM_ARGUMENTS, wait_for_server

ROOT = Path(__file__).resolve().parent.parent.parent
METRICS_TOKEN = "a-token-for-the-metrics-of-tests"


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    process: subprocess.Popen[bytes]


def database_url() -> str:
    """The tests' database as another process reaches it."""
    words = connection.settings_dict
    names = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}
    quoted = {
        key: str(words[name]).replace("\\", "\\\\").replace("'", "\\'") for name, key in names.items() if words[name]
    }
    return " ".join(f"{key}='{value}'" for key, value in quoted.items())


def on_the_tests_database() -> dict[str, str]:
    """What another process of this installation is told."""
    return {
        "DATABASE_URL": database_url(),
        "REDIS_URL": settings.REDIS_URL,
        "HASHED_STATIC": "0",
        "PYTHONPATH": str(ROOT),
    }


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


@pytest.fixture(scope="session")
def server(django_db_setup) -> Iterator[Server]:
    port = free_port()
    environment = {
        **os.environ,
        **on_the_tests_database(),
        "ALLOWED_HOSTS": "127.0.0.1",
        "METRICS_TOKEN": METRICS_TOKEN,
    }
    words = ["-m", "uvicorn", "config.asgi:application", "--port", str(port), "--log-level", "warning"]
    process = subprocess.Popen([sys.executable, *words], cwd=ROOT, env=environment)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_for_server(url, process)
        yield Server(url, process)
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Ends with this package: its event loop would stand in the way of asynchronous tests elsewhere."""
    path = needs("chromium")
    # Playwright's loop runs in this thread; Django would refuse every query of a test beside it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=path, args=CHROMIUM_ARGUMENTS)
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def open_context(browser: Browser, server: Server) -> Iterator[object]:
    """open_context(user, width=390, …) is a signed-in browser window; every script error or refused resource fails the test."""
    opened: list[BrowserContext] = []
    complaints: list[str] = []

    def open_one(user=None, *, width=1440, height=900, **options) -> BrowserContext:
        options.setdefault("locale", "en-GB")
        context = browser.new_context(base_url=server.url, viewport={"width": width, "height": height}, **options)
        opened.append(context)
        context.on("page", lambda page: _listen(page, complaints))
        if user is not None:
            context.add_cookies([session_cookie(user, server.url)])  # type: ignore[list-item]
        return context

    open_one.complaints = complaints  # type: ignore[attr-defined]
    yield open_one
    for context in opened:
        context.close()
    assert complaints == []


def _listen(page: Page, complaints: list[str]) -> None:
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))


def session_cookie(user: User, url: str) -> dict[str, str]:
    """A session made beside the sign-in page, whose slow password hash would cost each test a second."""
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    name = settings.SESSION_COOKIE_NAME
    return {"name": name, "value": client.cookies[name].value, "url": url}


@pytest.fixture
def mail(settings) -> Iterator[MailServer]:
    with mail_server() as caught:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", caught.port
        yield caught


@pytest.fixture
def hook() -> Iterator[Service]:
    with serving(STAND_INS["webhook"].judge) as running:
        yield running
