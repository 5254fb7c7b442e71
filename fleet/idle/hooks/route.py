"""The way to a machine over SSH: the team's key, and an address whose host key somebody has confirmed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fleet.inventory.models import Instance, SshHost
from fleet.inventory.remote import SshAddress
from fleet.inventory.ssh_keys import private_keys
from fleet.inventory.ways import ways_of
from fleet.telemetry.models import ScrapeTarget
from fleet.telemetry.scrape.through_ssh import SshRoute


def route_of(instance: Instance) -> SshRoute | None:
    """None: the team has no key, or nobody has confirmed who answers at any of the machine's addresses."""
    hosts = list(SshHost.objects.filter(instance=instance).exclude(pinned=""))
    pinned = {(row.host, row.port): row.pinned for row in hosts}
    if not pinned:
        return None
    key = private_keys([instance.team_id]).get(instance.team_id, "")
    if not key:
        return None
    for address in _addresses(instance, hosts):
        if (address.host, address.port) in pinned:
            return SshRoute(address, key, pinned[address.host, address.port])
    return None


def _addresses(instance: Instance, hosts: Sequence[SshHost]) -> Iterator[SshAddress]:
    """As people typed them for exporters, then as the provider lists them."""
    targets = ScrapeTarget.objects.filter(instance=instance, enabled=True).exclude(ssh="")
    for typed in targets.order_by("pk").values_list("ssh", flat=True):
        yield SshAddress.parse(typed)
    for address, _pinned in ways_of(instance, hosts):
        yield address
