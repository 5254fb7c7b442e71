from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cryptography.fernet import Fernet
from django.core.checks import Tags, run_checks
from django.core.exceptions import ImproperlyConfigured

from config.checks import refuse_unsafe_settings

GOOD_KEY = "0123456789abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@pytest.fixture(autouse=True)
def careful(settings):
    """Settings as a careful operator has them; each test spoils one."""
    settings.EMBEDDED_DATABASE = False
    settings.SECRET_KEY = GOOD_KEY
    settings.CREDENTIAL_KEYS = [Fernet.generate_key().decode()]
    settings.DEBUG = False
    settings.PUBLIC_URL = "https://rackrent.example"
    settings.USES_HTTPS = True
    settings.BEHIND_PROXY = True
    settings.TRUSTED_PROXIES = ["127.0.0.1"]
    settings.ALLOWED_HOSTS = ["rackrent.example"]
    settings.RACKRENT_HOST = "127.0.0.1"
    settings.REDIS_URL = "redis://:secret@cache.example:6379/0"
    settings.DEADMAN_URL = "https://ping.example/1"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    return settings


def found() -> list[str]:
    return [str(message.id) for message in run_checks(tags=[Tags.security]) if str(message.id).startswith("rackrent")]


def test_careful_settings_pass():
    assert found() == []
    refuse_unsafe_settings()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("TELEMETRY_STORE", "influx", "rackrent.E019"),
        ("SECRET_KEY", "short", "rackrent.E001"),
        ("SECRET_KEY", "abab" * 20, "rackrent.E001"),
        ("SECRET_KEY", "", "rackrent.E001"),
        ("CREDENTIAL_KEYS", [], "rackrent.E002"),
        ("CREDENTIAL_KEYS", ["not a key"], "rackrent.E003"),
        ("DEBUG", True, "rackrent.E004"),
        ("ALLOWED_HOSTS", ["*"], "rackrent.E005"),
        ("PUBLIC_URL", "ftp://rackrent.example", "rackrent.E006"),
        ("PUBLIC_URL", "https://rackrent.example/below", "rackrent.E006"),
        ("PUBLIC_URL", "https://user@rackrent.example", "rackrent.E006"),
        ("PUBLIC_URL", "https://other.example", "rackrent.E007"),
        ("REDIS_URL", "amqp://cache.example", "rackrent.E008"),
        ("REDIS_URL", "redis://cache.example:6379/0", "rackrent.E009"),
        ("DEADMAN_URL", "ping.example", "rackrent.E010"),
        ("TRUSTED_PROXIES", ["*"], "rackrent.E012"),
        ("ALLOWED_NETWORKS", ["10.0.0.0/8", "10.0.0.1/8"], "rackrent.E017"),
        ("ALLOWED_NETWORKS", ["the office"], "rackrent.E017"),
        ("EMAIL_BACKEND", "django.core.mail.backends.console.EmailBackend", "rackrent.W001"),
        ("PUBLIC_URL", "", "rackrent.W002"),
        ("BEHIND_PROXY", False, "rackrent.W003"),
    ],
)
def test_an_unsafe_setting_is_named(settings, name: str, value: object, expected: str):
    setattr(settings, name, value)
    assert expected in found()


def test_both_kinds_of_mail_encryption_exclude_each_other(settings):
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = True
    assert found() == ["rackrent.E011"]


def test_a_key_is_named_by_its_place_and_not_shown(settings):
    settings.CREDENTIAL_KEYS = [Fernet.generate_key().decode(), "spoilt-secret"]
    messages = [str(message) for message in run_checks(tags=[Tags.security])]
    assert any("Key 2 in CREDENTIAL_KEYS" in message for message in messages)
    assert not any("spoilt-secret" in message for message in messages)


def test_a_fresh_machine_that_nobody_else_reaches_passes(settings):
    settings.EMBEDDED_DATABASE = True
    settings.PUBLIC_URL = ""
    settings.USES_HTTPS = settings.BEHIND_PROXY = False
    settings.DEBUG = True
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    settings.REDIS_URL = "unix://:secret@/run/valkey.sock?db=0"
    settings.DEADMAN_URL = ""
    assert found() == []


def test_debug_is_refused_once_others_reach_it(settings):
    settings.EMBEDDED_DATABASE, settings.DEBUG, settings.PUBLIC_URL = True, True, ""
    settings.RACKRENT_HOST = "0.0.0.0"
    assert "rackrent.E004" in found()


def test_the_web_process_refuses_them_too(settings):
    settings.CREDENTIAL_KEYS = []
    with pytest.raises(ImproperlyConfigured, match="CREDENTIAL_KEYS is not set"):
        refuse_unsafe_settings()


def check_with(**environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    base = {"DATABASE_URL": "postgresql:///rackrent", "REDIS_URL": "redis://127.0.0.1/0", **environment}
    command = [sys.executable, "manage.py", "check"]
    return subprocess.run(command, env={**kept, **base}, capture_output=True, text=True, check=False)


def test_a_command_stops_at_an_error():
    done = check_with()
    assert done.returncode == 1
    assert "(rackrent.E001) SECRET_KEY is not set." in done.stderr


def test_another_database_is_refused_by_name():
    done = check_with(DATABASE_URL="sqlite:///rackrent.db", SECRET_KEY=GOOD_KEY)
    assert done.returncode == 1
    assert "DATABASE_URL is no PostgreSQL address" in done.stderr


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("TELEMETRY_WRITE_URL", "", "rackrent.E020"),
        ("TELEMETRY_WRITE_URL", "ftp://store.example/write", "rackrent.E020"),
        ("TELEMETRY_READ_URL", "https://user:secret@store.example/", "rackrent.E020"),
        ("TELEMETRY_USER", "rackrent", "rackrent.E021"),
    ],
)
def test_a_store_that_could_not_be_reached_is_refused(careful, name, value, expected):
    careful.TELEMETRY_STORE = "prometheus"
    careful.TELEMETRY_WRITE_URL = "https://store.example/api/v1/write"
    careful.TELEMETRY_READ_URL = "https://store.example/"
    careful.TELEMETRY_BEARER_TOKEN = "token"
    assert found() == []
    setattr(careful, name, value)
    assert found() == [expected]
    with pytest.raises(ImproperlyConfigured) as refused:
        refuse_unsafe_settings()
    assert "secret" not in str(refused.value)
