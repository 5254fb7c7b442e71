"""What a view leaves to the event loop: a log to be followed, a job to be waited for. The view says yes or no, and is done with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from fleet.rest.problems import NamedProblem
from fleet.teams.idempotency import caller_of

# In `scope` of a request that may be left to wait.
KEY = "rackrent.handover"
# Of one process, and of one caller in it.
MOST, MOST_EACH = 200, 20


@dataclass(frozen=True, slots=True)
class Following:
    """The log of one rank from a line on. `attempt` None: the newest, and each that follows it."""

    job: int
    rank: int
    attempt: int | None
    first: int
    words: str = ""
    numbers: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """Until the job has ended, for at most so long."""

    job: int
    seconds: int


class Places:
    """How many wait, in all and of each caller. Taken in a view's thread, given back on the loop."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._taken: Counter[str] = Counter()

    def take(self, caller: str) -> bool:
        with self._lock:
            if self._taken.total() >= MOST or self._taken[caller] >= MOST_EACH:
                return False
            self._taken[caller] += 1
            return True

    @property
    def taken(self) -> int:
        with self._lock:
            return self._taken.total()

    def leave(self, caller: str) -> None:
        with self._lock:
            self._taken[caller] -= 1
            self._taken += Counter()


@dataclass
class Handover:
    """One request's. `renews`: it waits already, and only asks whether it still may."""

    places: Places
    renews: bool = False
    wish: Following | Waiting | None = None
    caller: str = field(default="", init=False)

    def leave(self) -> None:
        if self.caller:
            self.places.leave(self.caller)
            self.caller = ""


def leave_to_wait(request: Request, wish: Following | Waiting) -> None:
    """Raises a 429 where too many wait, and a 400 where nobody is there to wait."""
    handover = handover_of(request)
    if handover is None:
        raise ValidationError({"follow": _("This server cannot keep an answer open.")})
    if not handover.renews:
        caller = caller_of(request)
        if not handover.places.take(caller):
            raise NamedProblem(
                _("Too many answers are kept open for you, or by this server. End one, or ask again later."),
                code="throttled",
                status_code=status.HTTP_429_TOO_MANY_REQUESTS,
                field=None,
            )
        handover.caller = caller
    handover.wish = wish


def handover_of(request: Request) -> Handover | None:
    scope: Any = getattr(request._request, "scope", {})  # noqa: SLF001 - Django's own request; DRF has no public word for it
    found: Handover | None = scope.get(KEY)
    return found
