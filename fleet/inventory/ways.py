"""How a machine is reached over SSH: as people typed it, then as its provider lists it, direct addresses before proxies, with the host keys that are pinned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fleet.inventory.models import Instance, SshHost
from fleet.inventory.remote import SshAddress

# An address with its pinned host key, "" = none yet; those of the hops before it are in the address.
Way = tuple[SshAddress, str]


def ways_of(machine: Instance, hosts: Iterable[SshHost]) -> list[Way]:
    """`hosts`: the machine's. What is no address is left out."""
    pinned = {(host.host, host.port): host.pinned for host in hosts}
    found: list[Way] = []
    for address in _addresses(machine):
        hops = tuple(replace(hop, pinned=pinned.get((hop.host, hop.port), "")) for hop in address.via)
        found.append((replace(address, via=hops), pinned.get((address.host, address.port), "")))
    return found


def _addresses(machine: Instance) -> Iterator[SshAddress]:
    if machine.ssh_typed:
        try:
            yield SshAddress.parse_way(machine.ssh_typed)
        except ValueError:
            # Typed before the form was as strict as it is.
            return
    for entry in sorted(machine.ssh, key=lambda entry: entry.get("kind") != "direct"):
        address = way_listed(entry)
        if address is not None:
            yield address


def way_listed(entry: Mapping[str, Any]) -> SshAddress | None:
    try:
        hops = [_text(hop) for hop in entry.get("via", ())]
        return SshAddress.parse_way(_text(entry) + (f" via {', '.join(hops)}" if hops else ""))
    except (KeyError, ValueError, TypeError, AttributeError):
        # A provider's word for an address that is none.
        return None


def _text(entry: Mapping[str, Any]) -> str:
    return f"{entry.get('user') or 'root'}@{bracketed(str(entry['host']))}:{entry.get('port') or 22}"


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def entry_of(address: SshAddress) -> dict[str, Any]:
    """As Instance.ssh keeps it."""
    entry: dict[str, Any] = {"host": address.host, "port": address.port, "user": address.user, "kind": "direct"}
    hops: Sequence[SshAddress] = address.via
    return entry | ({"via": [{"host": hop.host, "port": hop.port, "user": hop.user} for hop in hops]} if hops else {})
