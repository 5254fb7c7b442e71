"""The parts of a forecast, by what they are made of."""

from __future__ import annotations

from enum import StrEnum


class PartKind(StrEnum):
    """In the order in which they are listed."""

    SPENT = "spent"
    RUNNING = "running"
    DISKS = "disks"
    CHARGES = "charges"
    STARTS = "starts"
    STOPS = "stops"
    LEASES = "leases"
    MINIMUMS = "minimums"
    NEW = "new"
    GOING = "going"
