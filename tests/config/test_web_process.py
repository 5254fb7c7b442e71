from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.runtime.ports import listen
from config.web import SOCKET_VARIABLE, require_collected_files, web_socket


def test_it_takes_the_socket_that_it_was_given(monkeypatch: pytest.MonkeyPatch):
    with listen("127.0.0.1", 0) as given:
        monkeypatch.setenv(SOCKET_VARIABLE, str(os.dup(given.fileno())))
        with web_socket() as taken:
            assert taken.getsockname() == given.getsockname()


def test_it_refuses_to_serve_pages_whose_files_are_not_collected(settings, tmp_path: Path):
    settings.HASHED_STATIC, settings.STATIC_ROOT = True, tmp_path
    with pytest.raises(SystemExit, match="collectstatic"):
        require_collected_files()
    (tmp_path / "staticfiles.json").touch()
    require_collected_files()


def test_an_error_of_a_page_is_logged_without_debug():
    code = (
        "import django, logging; django.setup(); logging.getLogger('django.request').error('a page failed');"
        "logging.getLogger('django.request').warning('not found'); logging.getLogger('httpx').info('GET secret')"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == "ERROR django.request: a page failed\n"


def test_a_forged_host_name_is_one_line_in_the_log(client, capfd: pytest.CaptureFixture[str], caplog):
    assert client.get("/login/", headers={"host": "evil.example"}).status_code == 400
    assert "Invalid HTTP_HOST header: 'evil.example'" in caplog.text
    assert "Traceback" not in caplog.text


def test_no_client_logs_addresses():
    assert not logging.getLogger("httpx").isEnabledFor(logging.INFO)
