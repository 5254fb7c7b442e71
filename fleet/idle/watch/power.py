"""Whether a machine is on, by what its provider said in time."""

from __future__ import annotations

from datetime import datetime, timedelta

from fleet.inventory.machines import is_typed
from fleet.inventory.models import Instance
from fleet.providers.base import InstanceState

_OFF = frozenset({InstanceState.STOPPED, InstanceState.TERMINATED})
# Readings of an account that may be missed, and how long one takes at least: before that a list is no old one.
MISSED_READINGS = 3
SHORTEST = timedelta(minutes=5)
# One failed reading is weather; after the second nobody knows whether the key still tells the truth.
FAILURES = 2


def is_on(instance: Instance, *, now: datetime) -> bool | None:
    """None: it is on its way, in doubt, or the provider was not heard in time. A machine that no provider lists is what was typed of it."""
    if not is_typed(instance) and not _is_known(instance, now):
        return None
    if instance.state in _OFF:
        return False
    return True if instance.state == InstanceState.RUNNING else None


def _is_known(instance: Instance, now: datetime) -> bool:
    account = instance.account
    if instance.is_unseen or instance.doubted_since or instance.missed_listings or account.failures >= FAILURES:
        return False
    seen = max(instance.last_seen_at, instance.probed_at or instance.last_seen_at)
    return now - seen <= max(MISSED_READINGS * timedelta(seconds=account.poll_interval_seconds), SHORTEST)
