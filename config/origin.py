"""Which pages may open a websocket: those of this site. Cookies go along from any other port or scheme of the same host."""

from __future__ import annotations

from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from config.static import Application, Receive, Scope, Send

DEFAULT_PORTS = {"http": 80, "https": 443}
Origin = tuple[str, str, int]


class SameOrigin:
    """Lets a websocket through whose Origin has the scheme, host and port of PUBLIC_URL, or of the request where that is unset."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._denier: Application = WebsocketDenier.as_asgi()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope["headers"])
        said = origin_of(headers.get(b"origin", b"").decode("latin-1"))
        allowed = said is not None and said == own_origin(scope, headers.get(b"host", b"").decode("latin-1"))
        await (self._application if allowed else self._denier)(scope, receive, send)


def own_origin(scope: Scope, host: str) -> Origin | None:
    if settings.PUBLIC_URL:
        return origin_of(settings.PUBLIC_URL)
    name, _port = split_domain_port(host)
    if not name or not validate_host(name, settings.ALLOWED_HOSTS):
        return None
    scheme = "https" if scope.get("scheme") in {"wss", "https"} else "http"
    return origin_of(f"{scheme}://{host}")


def origin_of(url: str) -> Origin | None:
    """Scheme, host and port, the last also where it is only implied; None for what names none (`null`, nonsense)."""
    try:
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
    if not parts.hostname or port is None:
        return None
    return parts.scheme, parts.hostname, port
