"""What pages keep in the cache for a while. The cache away, it is made each time: a page must not end with it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from django.core.cache import cache
from redis.exceptions import RedisError

T = TypeVar("T")


def kept_or_made(key: str, make: Callable[[], T], *, seconds: float) -> T:
    """None is not kept."""
    try:
        found: T | None = cache.get(key)
    except (RedisError, OSError):
        return make()
    if found is not None:
        return found
    made = make()
    if made is not None:
        with contextlib.suppress(RedisError, OSError):
            cache.set(key, made, seconds)
    return made
