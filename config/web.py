"""The web process: one uvicorn with pages, API, websockets and ingest. `python -m config.web`."""

from __future__ import annotations

import gc
import os
import socket
import sys

import uvicorn
from django.conf import settings

from config.runtime.ports import listen

# The number of the listening socket that `up` passes on: it stays open while the web process is restarted, and callers wait in its queue.
SOCKET_VARIABLE = "RACKRENT_WEB_SOCKET"
SHUTDOWN_SECONDS = 8
# Database connections that are kept, where DATABASE_POOL_SIZE says nothing: one for each of REQUESTS_AT_ONCE, and some for websockets and
# enrolment. A new one costs PostgreSQL more than most pages do.
POOL_SIZE = 20
# A page of 8,000 GPUs makes 50,000 objects; by Python's own thresholds a third of its time went into looking for garbage among them.
GC_THRESHOLDS = (10_000, 20, 20)


def web_socket() -> socket.socket:
    """The socket that `up` passed on, or one of our own at RACKRENT_HOST and RACKRENT_PORT."""
    passed = os.environ.get(SOCKET_VARIABLE)
    if passed:
        return socket.socket(fileno=int(passed))
    return listen(settings.RACKRENT_HOST, settings.RACKRENT_PORT)


def require_collected_files() -> None:
    """A page could not name its own style sheet otherwise."""
    if settings.HASHED_STATIC and not (settings.STATIC_ROOT / "staticfiles.json").exists():
        sys.exit(
            "Static files are not collected. Run `manage.py collectstatic --noinput` first, or set DEBUG=1 for development."
        )


def main() -> None:
    require_collected_files()
    gc.set_threshold(*GC_THRESHOLDS)
    config = uvicorn.Config(
        "config.asgi:application",
        # Django's settings say where lines go.
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        # X-Forwarded-* are believed only where the operator said that a proxy of theirs writes them.
        proxy_headers=settings.BEHIND_PROXY,
        forwarded_allow_ips=settings.TRUSTED_PROXIES,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[web_socket()])


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ.setdefault("DATABASE_POOL_SIZE", str(POOL_SIZE))
    main()
