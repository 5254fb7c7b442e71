"""What a meter is called in FOCUS: a service with its one category, and a meter of it."""

from __future__ import annotations

from dataclasses import dataclass

from fleet.costs.ledger.intervals import Meter


@dataclass(frozen=True, slots=True)
class Service:
    name: str
    category: str
    subcategory: str
    meter: str


_MACHINES = ("GPU machines", "Compute", "Virtual Machines")
_DISKS = ("Machine disks", "Storage", "Block Storage")

SERVICES = {
    Meter.COMPUTE: Service(*_MACHINES, "Compute Usage"),
    Meter.MINIMUM: Service(*_MACHINES, "Minimum and Rounding"),
    Meter.COMMITMENT: Service(*_MACHINES, "Commitment"),
    Meter.UNKNOWN: Service(*_MACHINES, "Unknown Charge"),
    Meter.DISK_RUNNING: Service(*_DISKS, "Block Volume Usage"),
    Meter.DISK_STOPPED: Service(*_DISKS, "Block Volume Usage While Stopped"),
    Meter.NETWORK_VOLUME: Service("Network volumes", "Storage", "File Storage", "Network Volume Usage"),
    Meter.EGRESS: Service("Data transfer", "Networking", "Network Connectivity", "Data Transfer Out"),
    Meter.ADDRESS: Service("Public addresses", "Networking", "Network Infrastructure", "Address Usage"),
    Meter.LICENCE: Service("Licences", "Other", "Other (Other)", "Licence"),
    Meter.ADJUSTMENT: Service("Adjustments", "Other", "Other (Other)", "Adjustment"),
}


def service_of(meter: str) -> Service:
    return SERVICES.get(Meter(meter), SERVICES[Meter.UNKNOWN])
