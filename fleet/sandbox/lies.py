"""How the sandbox lies when it is told to, so that what Rackrent makes of a provider's lies can be watched (docs/sandbox.md).

Set over the API with the full key, forgotten with the process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fleet.sandbox.desk import RefusedError

RETURNS_AFTER_SECONDS = 120.0
RETRY_AFTER_SECONDS = 10.0
MOST = 100_000
# How many more calls each of these answers with a lie.
COUNTED = (
    "still_running",  # an act is accepted, and nothing happens
    "bills_on",  # a stop is carried out, and the whole machine is charged as before
    "forgets",  # an act begins, and what was before comes back
    "busy",  # 429 with Retry-After
    "gone",  # 410
    "error_but_created",  # a machine is made, and 500 answered
    "returns",  # terminated, and back again
)
# For how many seconds from now on, or of each new machine.
TIMED = (
    "broken_seconds",  # 500, whatever is asked
    "late_listing_seconds",  # a new machine is found in no answer for so long
)


class Lies:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left = dict.fromkeys(COUNTED, 0)
        self._late_seconds = 0.0
        self._broken_until = 0.0

    def shown(self) -> dict[str, float]:
        broken = max(0.0, self._broken_until - self._clock())
        return {**self._left, "broken_seconds": broken, "late_listing_seconds": self._late_seconds}

    def set(self, asked: Mapping[str, Any]) -> None:
        """All of them: what is not named ends. Raises RefusedError and changes nothing where one cannot be."""
        for name, value in asked.items():
            if name not in (*COUNTED, *TIMED):
                raise RefusedError(422, "invalid", f"{name[:40]}: must be one of {', '.join((*COUNTED, *TIMED))}.")
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MOST:
                raise RefusedError(422, "invalid", f"{name}: must be a whole number from 0 to {MOST}.")
        self._left = {name: asked.get(name, 0) for name in COUNTED}
        self._late_seconds = asked.get("late_listing_seconds", 0)
        self._broken_until = self._clock() + asked.get("broken_seconds", 0)

    def takes(self, name: str) -> bool:
        """Whether this call is lied to; counts it."""
        left = self._left[name]
        self._left[name] = max(left - 1, 0)
        return left > 0

    def before(self, method: str) -> None:
        """Raises RefusedError for a call that is not let through."""
        if self._clock() < self._broken_until:
            raise RefusedError(500, "broken", "Something went wrong.")
        if self.takes("busy"):
            raise RefusedError(429, "busy", "Too many calls.", retry_after=RETRY_AFTER_SECONDS)
        if method == "GET" and self.takes("gone"):
            raise RefusedError(410, "gone", "This version of the API is gone.")

    def listed_from(self, known: float | None) -> float | None:
        """From when on a machine that is made now is listed; a second order for it changes nothing."""
        return self._clock() + self._late_seconds if known is None and self._late_seconds else known

    def after_create(self) -> None:
        if self.takes("error_but_created"):
            raise RefusedError(500, "broken", "Something went wrong.")
