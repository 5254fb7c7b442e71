"""Histories that pages have read are kept for some minutes: who tries other windows looks at the same past. The cache away, it is read each time."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.core.cache import cache
from redis.exceptions import RedisError

from fleet.idle.dryrun.history import histories_of
from fleet.idle.dryrun.quiet import History
from fleet.idle.policies.covering import JudgedBy
from fleet.inventory.models import Instance

KEPT_SECONDS = 600
# While one is read, nobody else begins to read the same.
READ_SECONDS = 300
AWAY = (RedisError, OSError)


def key_of(machines: Sequence[Instance], ways: Mapping[int, JudgedBy], days: int) -> str:
    """Of everything that a history depends on but time: the machines, how they are judged, and how far back."""
    shape = [(machine.pk, machine.gpu_count, ways[machine.pk].mode, ways[machine.pk].limits) for machine in machines]
    return f"idle:history:{sha256(repr(sorted(shape, key=lambda one: one[0])).encode()).hexdigest()}:{days}"


def kept(key: str) -> Any:
    """None: it is not there, or the cache is away."""
    with contextlib.suppress(*AWAY):
        return cache.get(key)
    return None


def keep(key: str, value: Any) -> None:
    with contextlib.suppress(*AWAY):
        cache.set(key, value, KEPT_SECONDS)


def kept_histories(
    machines: Sequence[Instance], ways: Mapping[int, JudgedBy], *, days: int, now: datetime
) -> list[History]:
    key = key_of(machines, ways, days)
    found: list[History] | None = kept(key)
    if found is None:
        found = histories_of(machines, ways, days=days, now=now)
        keep(key, found)
    return found


def is_kept(machines: Sequence[Instance], ways: Mapping[int, JudgedBy], *, days: int) -> bool:
    return kept(key_of(machines, ways, days)) is not None


def may_begin(machines: Sequence[Instance], ways: Mapping[int, JudgedBy], *, days: int) -> bool:
    """Once in a while for each history, whoever asks."""
    with contextlib.suppress(*AWAY):
        return bool(cache.add(f"{key_of(machines, ways, days)}:read", True, READ_SECONDS))
    return True
