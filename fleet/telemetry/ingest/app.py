"""The ASGI callable: routes, tokens, bodies and answers. What is stored and how lies in the modules beside it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from psycopg_pool import AsyncConnectionPool

from fleet.telemetry.ingest.agents import AgentCache, KnownAgent
from fleet.telemetry.ingest.body import INLINE_BYTES, ClientGoneError, Receive, decompress, read_body
from fleet.telemetry.ingest.database import make_pool
from fleet.telemetry.ingest.errors import (
    BadBodyError,
    BadTokenError,
    InvalidBodyError,
    NotFoundError,
    RefusalError,
    TooLargeError,
    UnavailableError,
    WrongMethodError,
)
from fleet.telemetry.ingest.samples import take_batch
from fleet.telemetry.ingest.writer import Writer, ensure_partitions
from fleet.telemetry.sanitise import BadJsonError, Decoded, InvalidError, Reader
from fleet.telemetry.wire import Batch

logger = logging.getLogger(__name__)

T = TypeVar("T", bound=msgspec.Struct)
Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = dict[bytes, bytes]

# Decoding 16 MiB takes a few hundred MiB for a moment: so many large bodies at once, the others wait.
LARGE_BODIES_AT_ONCE = 2

_JSON = (b"content-type", b"application/json")
_encode = msgspec.json.Encoder().encode
_BATCHES = Reader(Batch)
