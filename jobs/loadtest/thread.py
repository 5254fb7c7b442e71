"""The event loop of a load test, in a thread of its own: the one that asks for it can write rows meanwhile, and end it."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

from jobs.loadtest.reach import LoadFailed, StageDone

Tell = Callable[[StageDone], None]


@dataclass(frozen=True, slots=True)
class Ended:
    """`why`: "" = it came to its own end, else a key of words.WHYS."""

    why: str = ""
    detail: str = ""


class Loading:
    """The event loop in its thread. What it has to tell meanwhile lies in `told`."""

    def __init__(self, work: Callable[[Tell], Coroutine[Any, Any, None]], *, most_seconds: float) -> None:
        self.told: queue.SimpleQueue[StageDone] = queue.SimpleQueue()
        self._work, self._most_seconds = work, most_seconds
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="load-test")
        self._running: Future[Ended] = Future()
        self._stop: Callable[[], None] | None = None
        self._cancelled = False

    def __enter__(self) -> Self:
        self._running = self._pool.submit(self._run)
        return self

    def __exit__(self, *_failure: object) -> None:
        self.cancel()
        self._pool.shutdown()

    def wait(self, seconds: float) -> Ended | None:
        """None: it goes on. Whatever it did not expect is raised here."""
        done, _open = wait([self._running], timeout=seconds)
        return self._running.result() if done else None

    def cancel(self) -> None:
        self._cancelled = True
        if self._stop is not None:
            self._stop()

    def _run(self) -> Ended:
        ended = Ended()
        try:
            asyncio.run(self._bounded())
        except* asyncio.CancelledError:
            ended = Ended("cancelled")
        except* TimeoutError:
            ended = Ended("time")
        except* LoadFailed as group:
            failure = first_of(group)
            ended = Ended(failure.code, failure.detail)
        finally:
            self._stop = None
        return ended

    async def _bounded(self) -> None:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        self._stop = lambda: _call(loop, task.cancel)
        if self._cancelled:
            return
        async with asyncio.timeout(self._most_seconds):
            await self._work(self.told.put)


def _call(loop: asyncio.AbstractEventLoop, what: Callable[[], object]) -> None:
    with suppress(RuntimeError):
        # It may have ended this very moment.
        loop.call_soon_threadsafe(what)


def first_of(group: BaseExceptionGroup[LoadFailed]) -> LoadFailed:
    one = group.exceptions[0]
    return first_of(one) if isinstance(one, BaseExceptionGroup) else one
