"""How a machine of a job is reached: the addresses that its provider or a person gave, direct ones first, with the host keys that are pinned."""

from __future__ import annotations

from collections.abc import Sequence

from fleet.inventory.models import Instance, SshHost
from fleet.inventory.remote import SshAddress

Place = tuple[SshAddress, str]


def places_of(machine: Instance, hosts: Sequence[SshHost]) -> list[Place]:
    """`hosts`: the machine's. What is no address is left out."""
    pinned = {(host.host, host.port): host.pinned for host in hosts}
    found: list[Place] = []
    for entry in sorted(machine.ssh, key=lambda entry: entry.get("kind") != "direct"):
        try:
            address = SshAddress.parse(
                f"{entry.get('user') or 'root'}@{bracketed(str(entry['host']))}:{entry.get('port') or 22}"
            )
        except (KeyError, ValueError):
            continue
        found.append((address, pinned.get((address.host, address.port), "")))
    return found


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
