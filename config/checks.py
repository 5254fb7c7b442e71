"""Refuses settings that would be unsafe or could not work. `rackrent.E…` stops every command, web and worker; `W…` is said.

Each check is told what it judges by id in docs/operate.md. Embedded servers with generated keys on this machine alone pass all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register

from config.reach import is_loopback, public_host
from fleet.inventory.reach import reach_problem

SECRET_KEY_MIN_LENGTH, SECRET_KEY_MIN_DISTINCT = 50, 5

Check = Callable[[], Iterator[CheckMessage]]


def is_exposed() -> bool:
    """Whether others than this machine's own users are meant to reach this installation."""
    public = public_host(settings.PUBLIC_URL)
    return not is_loopback(settings.RACKRENT_HOST) or bool(public and not is_loopback(public))


def is_real_use() -> bool:
    return not settings.EMBEDDED_DATABASE or is_exposed()


@register(Tags.security)
def check_settings(**_: object) -> list[CheckMessage]:
    return [message for check in CHECKS for message in check()]


def secret_key() -> Iterator[CheckMessage]:
    key = settings._wrapped.SECRET_KEY if not settings.configured else getattr(settings, "SECRET_KEY_VALUE", "")
    if not key:
        yield Error("SECRET_KEY is not set.", hint=NEW_SECRET_KEY, id="rackrent.E001")
    elif len(key) < SECRET_KEY_MIN_LENGTH or len(set(key)) < SECRET_KEY_MIN_DISTINCT or key.startswith("django-insecure"):
        yield Error("SECRET_KEY is too short or too simple.", hint=NEW_SECRET_KEY, id="rackrent.E001")
