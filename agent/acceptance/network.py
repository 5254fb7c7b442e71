"""How fast data comes and goes between this machine and its dashboard, or a peer that the agent's own settings name. Bounded in bytes."""

from __future__ import annotations

import os
import time

from agent.acceptance.unmeasured import NotMeasuredError
from agent.settings import load_settings
from agent.transport import Dashboard, TransportError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Row = dict[str, object]

PATH = "/ingest/v1/speed"
MIB = 1 << 20
# The dashboard hands out no more than this in one answer, and takes no more in one request
DOWN_BYTES, UP_BYTES = 8 * MIB, MIB
_MOST_DOWN_BYTES, _MOST_UP_BYTES = 64 * MIB, 32 * MIB


def test_network(settings_file: str, *, seconds: float) -> Row:
    """Raises NotMeasuredError."""
    settings = load_settings(settings_file)
    token = settings.token if settings.accept_peer is None else ""
    dashboard = Dashboard(
        settings.accept_peer or settings.url, token, ca_file=settings.ca_file, allow_http=settings.allow_http
    )
    try:
        found: Row = {"peer": "settings" if settings.accept_peer else "dashboard"}
        path = "" if settings.accept_peer else PATH
        down = _rate(lambda: _down(dashboard, path), seconds / 2, _MOST_DOWN_BYTES)
        found.update(download_bytes_per_second=down[0], downloaded_bytes=down[1])
        if not settings.accept_peer:
            data = os.urandom(UP_BYTES)
            up = _rate(lambda: _up(dashboard, data), seconds / 2, _MOST_UP_BYTES)
            found.update(upload_bytes_per_second=up[0], uploaded_bytes=up[1])
    except TransportError as error:
        raise NotMeasuredError(f"the peer cannot be reached: {error}") from error
    else:
        return found
    finally:
        dashboard.close()


def _rate(move: Callable[[], int], seconds: float, most_bytes: int) -> tuple[int, int]:
    """(bytes a second, bytes); the first exchange, which opens the connection, is left out where there is a second."""
    first = move()
    began, moved = time.monotonic(), 0
    while time.monotonic() - began < seconds and first + moved < most_bytes:
        moved += move()
    return round(moved / (time.monotonic() - began)), first + moved


def _down(dashboard: Dashboard, path: str) -> int:
    answer, data = dashboard.get(path, most_bytes=DOWN_BYTES)
    return len(_checked(answer.status, data))


def _up(dashboard: Dashboard, data: bytes) -> int:
    answer = dashboard.post_bytes(PATH, data)
    return len(_checked(answer.status, data))


def _checked(status: int, data: bytes) -> bytes:
    if status != 200 or not data:
        raise NotMeasuredError(f"the peer answered with {status}")
    return data
