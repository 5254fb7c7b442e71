"""How the gateways are reached, and how they reach this installation's own pages."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from fleet.guard import Guard
from jobs.gateway.keeper import Keeper
from jobs.gateway.links import Links
from jobs.gateway.nginx import Nginx


def gateway_keeper(program: str, directory: Path, account: tuple[int, int] | None) -> Keeper:
    host = f"[{settings.GATEWAY_HOST}]" if ":" in settings.GATEWAY_HOST else settings.GATEWAY_HOST
    return Keeper(
        nginx=Nginx(program, directory, account),
        links=Links(directory, Guard.of(settings.ALLOWED_NETWORKS)),
        listen=f"{host}:{settings.GATEWAY_PORT}",
        web=settings.WEB_URL,
        web_host=settings.ALLOWED_HOSTS[0].lstrip(".") if "*" not in settings.ALLOWED_HOSTS else "localhost",
    )
