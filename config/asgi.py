"""One ASGI application for all that the web process serves: static files, health, pages and API, websockets, ingest."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import WebsocketDenier
from django import setup
from django.urls import path, re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

# The imports below need it.
setup(set_prefix=False)

from config.checks import refuse_unsafe_settings  # noqa: E402
from config.crowd import CrowdedHandler  # noqa: E402
from config.health import healthz  # noqa: E402
from config.metrics.page import metrics  # noqa: E402
from config.origin import SameOrigin  # noqa: E402
from config.static import Application, Receive, Scope, Send, StaticFiles  # noqa: E402
from config.watch import watch  # noqa: E402
from fleet.telemetry.consumers import LiveConsumer  # noqa: E402
from fleet.telemetry.ingest.app import PREFIXES, Ingest  # noqa: E402
from jobs.api.following import WaitingRequests  # noqa: E402

refuse_unsafe_settings()


def beside(applications: Mapping[str, Application], otherwise: Application) -> Application:
    """HTTP requests for exactly these paths go to their application, everything else to `otherwise`."""

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        found = applications.get(scope["path"]) if scope["type"] == "http" else None
        await (found or otherwise)(scope, receive, send)

    return route


def with_ingest(ingest: Ingest, otherwise: Application) -> Application:
    """What agents call goes past all of Django, and the server's start and end are ingest's."""

    async def route(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].startswith(PREFIXES):
            await ingest(scope, receive, send)
        elif scope["type"] == "lifespan":
            await _live(ingest, receive, send)
        else:
            await otherwise(scope, receive, send)

    return route


async def _live(ingest: Ingest, receive: Receive, send: Send) -> None:
    watching: asyncio.Task[None] | None = None
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await ingest.start()
            watching = asyncio.create_task(watch())
            await send({"type": "lifespan.startup.complete"})
        else:
            if watching is not None:
                watching.cancel()
            await ingest.stop()
            await send({"type": "lifespan.shutdown.complete"})
            return


sockets = URLRouter([path("ws/live/", LiveConsumer.as_asgi()), re_path("", WebsocketDenier.as_asgi())])
websocket = SameOrigin(AuthMiddlewareStack(sockets))
pages = ProtocolTypeRouter({"http": WaitingRequests(CrowdedHandler()), "websocket": websocket})
application = with_ingest(Ingest(), StaticFiles(beside({"/healthz": healthz, "/metrics": metrics}, pages)))
