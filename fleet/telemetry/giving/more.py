"""Families that slices above this one add to a team's page; each fills in when the app is ready."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import datetime

from fleet.telemetry.giving.text import Family

# Called with the ids of the teams whose page it is, and the present time.
MoreFamilies = Callable[[Collection[int], datetime], Iterator[Family]]
more_families: list[MoreFamilies] = []


def added(team_ids: Collection[int], *, now: datetime) -> list[Family]:
    """All that they need is read here, and nothing while the page is sent: threads that send have no connection to give back."""
    return [family for more in more_families for family in more(team_ids, now)]
