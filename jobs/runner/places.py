"""How a machine of a job is reached."""

from __future__ import annotations

from fleet.inventory.ways import Way as Place
from fleet.inventory.ways import ways_of as places_of

__all__ = ["Place", "places_of"]
