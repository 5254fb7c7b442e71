"""Runs the stages of a plan against whatever answers: the only place that decides when a request begins, and that none does beyond the bounds.

No Django, no network of its own: `ask` is given. Times are the running loop's.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field

from jobs.loadtest.figures import StageFigures, figures_of, percentile
from jobs.loadtest.plan import MOST_AT_ONCE, LoadPlan, Loop
from jobs.loadtest.sample import Sample

# The requests of a closed stage do not begin all at once: that would be a pile-up of the tester's own making.
RAMP_SHARE, RAMP_SECONDS = 0.2, 3.0
LAG_EVERY_SECONDS = 0.1

Ask = Callable[[int], Awaitable[Sample]]


@dataclass(slots=True)
class Course:
    """How far a test is. `begun` counts every request of it; more than the plan's bound never begin."""

    plan: LoadPlan
    stage: int = 0
    begun: int = 0
    under_way: int = 0
    answered: int = 0
    failed: int = 0

    @property
    def spent(self) -> bool:
        return self.begun >= self.plan.most_requests


@dataclass(slots=True)
class _Stage:
    number: int
    level: float
    begin: float
    end: float
    samples: list[Sample] = field(default_factory=list)
    lags: list[float] = field(default_factory=list)
    not_sent: int = 0


async def run_stages(course: Course, ask: Ask, *, seed: int = 0) -> AsyncIterator[StageFigures]:
    """One stage after the other, each with its figures as it ends; ends early when the requests are spent. To cancel it, cancel the task."""
    for number, level in enumerate(course.plan.levels):
        if course.spent:
            return
        course.stage = number
        yield await _run_stage(course, ask, number, level, random.Random(seed + number))  # noqa: S311 - arrivals, no secret


async def _run_stage(course: Course, ask: Ask, number: int, level: float, chance: random.Random) -> StageFigures:
    begin = asyncio.get_running_loop().time()
    stage = _Stage(number, level, begin, begin + course.plan.stage_seconds)
    ringing = asyncio.create_task(_watch_lag(stage))
    try:
        async with asyncio.TaskGroup() as group:
            if course.plan.loop is Loop.CLOSED:
                for place in range(int(level)):
                    group.create_task(_keep_asking(course, stage, ask, _ramp(course.plan) * place / level))
            else:
                await _arrive(course, stage, ask, chance, group.create_task)
    finally:
        ringing.cancel()
    return _figures(course, stage)


def _ramp(plan: LoadPlan) -> float:
    return min(RAMP_SHARE * plan.stage_seconds, RAMP_SECONDS)


def _figures(course: Course, stage: _Stage) -> StageFigures:
    """Where the requests were spent before its time was, the stage is what there was of it."""
    last = max((sample.ended for sample in stage.samples), default=stage.begin)
    end = min(stage.end, last) if course.spent else stage.end
    if course.plan.loop is Loop.CLOSED:
        settled = stage.begin + (_ramp(course.plan) if stage.level > 1 else 0)
    else:
        # It begins empty: the time of one answer later as many end as begin.
        usual = percentile([sample.seconds for sample in stage.samples if not sample.error], 50) or 0.0
        settled = stage.begin + min(usual, (end - stage.begin) / 2)
    return figures_of(
        stage.samples,
        level=stage.level,
        begin=min(settled, end),
        end=end,
        not_sent=stage.not_sent,
        lags=stage.lags,
    )


async def _keep_asking(course: Course, stage: _Stage, ask: Ask, wait: float) -> None:
    await asyncio.sleep(wait)
    loop = asyncio.get_running_loop()
    while loop.time() < stage.end and not course.spent:
        sample = await _one(course, stage, ask)
        if sample.error and sample.seconds < LAG_EVERY_SECONDS:
            # A server that refuses at once is not to be hammered.
            await asyncio.sleep(LAG_EVERY_SECONDS)


async def _arrive(
    course: Course,
    stage: _Stage,
    ask: Ask,
    chance: random.Random,
    begin: Callable[[Coroutine[None, None, Sample]], object],
) -> None:
    """Requests that know nothing of each other (a Poisson process), drawn from a seed: the same test is the same again."""
    loop = asyncio.get_running_loop()
    at = stage.begin + chance.expovariate(stage.level)
    while at < stage.end and not course.spent:
        await asyncio.sleep(max(at - loop.time(), 0))
        if course.under_way >= MOST_AT_ONCE:
            stage.not_sent += 1
        else:
            begin(_one(course, stage, ask))
            # It counts from the moment on at which it was decided.
            await asyncio.sleep(0)
        at += chance.expovariate(stage.level)


async def _one(course: Course, stage: _Stage, ask: Ask) -> Sample:
    course.begun += 1
    course.under_way += 1
    try:
        sample = await ask(course.begun)
    finally:
        course.under_way -= 1
    stage.samples.append(sample)
    if sample.error:
        course.failed += 1
    else:
        course.answered += 1
    return sample


async def _watch_lag(stage: _Stage) -> None:
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LAG_EVERY_SECONDS
        await asyncio.sleep(LAG_EVERY_SECONDS)
        stage.lags.append(max(loop.time() - due, 0.0))
