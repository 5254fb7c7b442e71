"""Keeps calls apart where a provider counts them by the second. Other processes call with the same key: a 429 still has to be borne."""

from __future__ import annotations

import time
from collections.abc import Hashable
from threading import Lock


class Pace:
    """At most one call each `seconds` for a key of the caller's choice, within this process."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._free_at: dict[Hashable, float] = {}
        self._lock = Lock()

    def wait(self, key: Hashable) -> None:
        """Returns when the key's turn has come."""
        with self._lock:
            now = time.monotonic()
            turn = max(now, self._free_at.get(key, now))
            self._free_at[key] = turn + self.seconds
        if turn > now:
            time.sleep(turn - now)
