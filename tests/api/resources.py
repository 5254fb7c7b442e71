"""Every list of the API, found in the router itself: a resource added later is walked without being named here."""

from __future__ import annotations

from config.api import router

LISTS = sorted(f"/api/v1/{prefix}/" for prefix, _, _ in router.registry)


def first_detail(client, address: str) -> str:
    """The address of the first row of a list."""
    row = client.get(address).json()["results"][0]
    key = "slug" if address == "/api/v1/teams/" else "id"
    return f"{address}{row[key]}/"
