"""One page of an exporter that listens on its machine's loopback only."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import httpx

from fleet.guard import Guard, RefusedAddressError
from fleet.inventory.remote import RemoteError, SshAddress, ThroughSsh, open_ssh
from fleet.telemetry.scrape import fetch
from fleet.telemetry.scrape.fetch import FetchError, fetch_page


@dataclass(frozen=True, slots=True)
class SshRoute:
    """`pinned`: the host key that a person has confirmed, "" for none yet."""

    address: SshAddress
    private_key: str = field(repr=False)
    pinned: str = ""


async def fetch_through_ssh(route: SshRoute, guard: Guard, url: str, token: str) -> str:
    """The deadline of a page covers the SSH connection too. Raises FetchError."""
    seconds = fetch.DEADLINE_SECONDS
    try:
        async with (
            asyncio.timeout(seconds),
            open_ssh(route.address, guard=guard, private_key=route.private_key, pinned=route.pinned) as connection,
            httpx.AsyncClient(transport=ThroughSsh(connection), timeout=seconds, headers=fetch.HEADERS) as client,
        ):
            return await fetch_page(client, url, token)
    except TimeoutError:
        raise FetchError("timeout", f"{seconds:.0f}") from None
    except RefusedAddressError as error:
        # Which address a name has inside the installation's own network is nothing to tell a team.
        raise FetchError(f"refused_{error.code}", route.address.host) from None
    except RemoteError as error:
        raise FetchError(f"ssh_{error.code}", error.detail, offered=error.offered) from None
