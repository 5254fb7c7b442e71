"""The embedded servers for the length of one command."""

from __future__ import annotations

from contextlib import AbstractContextManager

from django.conf import settings
from django.db import connections

from config.installation import Installation


def database_running() -> AbstractContextManager[None]:
    """Inside, the database is up: a running one, or the embedded one, started for this and stopped afterwards."""
    installation: Installation = settings.INSTALLATION
    return installation.running(
        installation.servers(database=settings.EMBEDDED_DATABASE, broker=settings.EMBEDDED_BROKER),
        at_end=connections.close_all,
    )
