"""Every list of the API, found in the router itself: a resource added later is walked without being named here."""

from __future__ import annotations

from config.api import router
from fleet.teams.writing import WritableRows

# What a row of a list is called by in its own address, where that is not its id.
KEYS = {"/api/v1/teams/": "slug", "/api/v1/latest/": "instance", "/api/v1/machine-splits/": "instance"}
KEYS["/api/v1/machine-uses/"] = "instance"
KEYS["/api/v1/idle-verdicts/"] = "instance"
# Lists that have a write side.
WRITABLE = {f"/api/v1/{prefix}/" for prefix, view, _ in router.registry if issubclass(view, WritableRows)}
LISTS = sorted(f"/api/v1/{prefix}/" for prefix, _, _ in router.registry)


def first_detail(client, address: str) -> str:
    """The address of the first row of a list."""
    row = client.get(address).json()["results"][0]
    return f"{address}{row[KEYS.get(address, 'id')]}/"
