"""What the simulated agents need of the dashboard's database, asked for from their event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from asgiref.sync import sync_to_async
from django.db import DatabaseError, InterfaceError, close_old_connections

from fleet.inventory.models import ProviderAccount
from fleet.sandbox.client import TryLaterError
from fleet.sandbox.team import adopt_machines, listed_machines, new_enrolment_token

T = TypeVar("T")
LOOK_SECONDS = 2.0


class DashboardOffice:
    """Remembers which machines are listed; asks the database at most every LOOK_SECONDS, and only while one is missing."""

    def __init__(self, account: ProviderAccount) -> None:
        self.account = account
        self._listed: set[str] = set()
        self._looked_at = float("-inf")
        self._token = ""
        self._lock = asyncio.Lock()

    async def is_listed(self, machine_id: str) -> bool:
        async with self._lock:
            if machine_id not in self._listed and time.monotonic() - self._looked_at > LOOK_SECONDS:
                self._listed = await ask_database(self._look)
                self._looked_at = time.monotonic()
        return machine_id in self._listed

    async def enrolment_token(self, *, refused: str = "") -> str:
        async with self._lock:
            if not self._token or self._token == refused:
                self._token = await ask_database(lambda: new_enrolment_token(team=self.account.team))
        return self._token

    def _look(self) -> set[str]:
        adopt_machines(account=self.account)
        return listed_machines(self.account)


async def ask_database(question: Callable[[], T]) -> T:
    """Asked in a thread, whose connection is given back. Raises TryLaterError while the database is away."""

    def answer() -> T:
        close_old_connections()
        try:
            return question()
        except (DatabaseError, InterfaceError) as error:
            raise TryLaterError(f"the database is away: {type(error).__name__}") from error
        finally:
            close_old_connections()

    return await sync_to_async(answer)()
