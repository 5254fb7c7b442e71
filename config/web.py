"""The web process: one uvicorn with pages, API, websockets and ingest. `python -m config.web`."""

from __future__ import annotations

import os
import socket
from typing import Any

import uvicorn
from django.conf import settings

from config.runtime.ports import listen

# The number of the listening socket that `up` passes on: it stays open while the web process is restarted, and callers wait in its queue.
SOCKET_VARIABLE = "RACKRENT_WEB_SOCKET"
SHUTDOWN_SECONDS = 8

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "loggers": {"uvicorn": {"handlers": ["stderr"], "level": "WARNING", "propagate": False}},
}


def web_socket() -> socket.socket:
    """The socket that `up` passed on, or one of our own at RACKRENT_HOST and RACKRENT_PORT."""
    passed = os.environ.get(SOCKET_VARIABLE)
    if passed:
        return socket.socket(fileno=int(passed))
    return listen(settings.RACKRENT_HOST, settings.RACKRENT_PORT)


def main() -> None:
    config = uvicorn.Config(
        "config.asgi:application",
        log_config=LOGGING,
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
    main()
