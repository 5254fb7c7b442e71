"""The asynchronous connections of ingest, to the same database as Django's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from django.db import connections
from psycopg.conninfo import make_conninfo
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from fleet.telemetry.ingest import arrays
from fleet.telemetry.ingest.errors import UnavailableError

MIN_CONNECTIONS = 2
MAX_CONNECTIONS = 8
# Agents retry; a request must not wait for a database that is away.
WAIT_SECONDS = 5.0
# How long the pool keeps trying by itself before it waits for the next request: a database that returns is found at once.
RECONNECT_SECONDS = 2.0

_NAMES = {"NAME": "dbname", "USER": "user", "PASSWORD": "password", "HOST": "host", "PORT": "port"}


def conninfo() -> str:
    settings = connections["default"].settings_dict
    options = {
        name: value for name, value in settings["OPTIONS"].items() if name not in ("pool", "server_side_binding")
    }
    named = {ours: settings[theirs] for theirs, ours in _NAMES.items() if settings.get(theirs)}
    return make_conninfo(**{"connect_timeout": 5, **options, **named, "application_name": "rackrent-ingest"})


def make_pool() -> AsyncConnectionPool[Any]:
    """A closed pool; `await pool.open()` returns at once, whether the database is there or not."""
    return AsyncConnectionPool(
        conninfo(),
        min_size=MIN_CONNECTIONS,
        max_size=MAX_CONNECTIONS,
        timeout=WAIT_SECONDS,
        reconnect_timeout=RECONNECT_SECONDS,
        open=False,
        configure=_configure,
        name="ingest",
    )


async def _configure(connection: psycopg.AsyncConnection[Any]) -> None:
    arrays.register(connection)


@asynccontextmanager
async def reaching_database() -> AsyncIterator[None]:
    """Turns what says that the database is away into UnavailableError; errors of the data itself pass."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, PoolClosed) as error:
        raise UnavailableError(f"The database cannot be reached ({type(error).__name__}). Try again.") from error
