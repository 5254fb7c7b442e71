"""Where jobs stand, asked once a second for all that anybody in this process waits for."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from channels.db import database_sync_to_async
from django.db import Error
from django.db.models import Max, Sum

from jobs.book.models import OPEN_STATES, Job

logger = logging.getLogger(__name__)
LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Standing:
    """`attempt`: number of the newest; `log_bytes`: stored of all its machines' logs. A job that is no more is not open."""

    is_open: bool = False
    attempt: int = 0
    log_bytes: int = 0


def standings_of(job_ids: Sequence[int]) -> dict[int, Standing]:
    """One query, however many ask."""
    rows = Job.objects.filter(pk__in=set(job_ids)).annotate(
        newest=Max("attempts__number"), stored=Sum("attempts__nodes__log_offset")
    )
    found = {
        pk: Standing(state in OPEN_STATES, newest or 0, stored or 0)
        for pk, state, newest, stored in rows.values_list("pk", "state", "newest", "stored")
    }
    return {pk: found.get(pk, Standing()) for pk in job_ids}


ask_standings = database_sync_to_async(standings_of, thread_sensitive=False)


class JobWatch:
    """One a process. It asks while somebody follows, and not otherwise."""

    def __init__(self) -> None:
        self._followers: Counter[int] = Counter()
        self._standings: dict[int, Standing] = {}
        self._round = asyncio.Event()
        self._asking: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def of(self, job_id: int) -> AsyncIterator[News]:
        self._followers[job_id] += 1
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
        try:
            yield News(self, job_id)
        finally:
            self._followers[job_id] -= 1
            if not self._followers[job_id]:
                del self._followers[job_id]
                self._standings.pop(job_id, None)
            if not self._followers and self._asking is not None:
                self._asking.cancel()
                self._asking = None

    async def _ask(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                found = await ask_standings(list(self._followers))
            except Error as error:
                logger.warning("Where followed jobs stand is not known: %s", error)
                continue
            self._standings = {pk: standing for pk, standing in found.items() if pk in self._followers}
            done, self._round = self._round, asyncio.Event()
            done.set()

    async def changed(self, job_id: int, since: Standing, within: float) -> Standing:
        """Its standing as soon as it is another; the same one when the time is over."""
        try:
            async with asyncio.timeout(within):
                while (standing := self._standings.get(job_id, since)) == since:
                    await self._round.wait()
        except TimeoutError:
            return since
        return standing


@dataclass(frozen=True, slots=True)
class News:
    """Of one job."""

    watch: JobWatch
    job_id: int

    async def now(self) -> Standing:
        found: dict[int, Standing] = await ask_standings([self.job_id])
        return found[self.job_id]

    async def changed(self, since: Standing, within: float) -> Standing:
        return await self.watch.changed(self.job_id, since, within)
