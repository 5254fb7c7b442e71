"""The stages of a load test: what begins when, and that nothing begins beyond the bounds."""

from __future__ import annotations

import asyncio

import pytest

from jobs.loadtest.plan import MOST_AT_ONCE, LoadPlan, Loop
from jobs.loadtest.sample import Sample
from jobs.loadtest.stage import Course, run_stages


class Answers:
    """Answers after `seconds`, and counts how many it has to do with at once."""

    def __init__(self, seconds: float = 0.02, *, error: str = "") -> None:
        self.seconds, self.error = seconds, error
        self.now = self.most = self.asked = 0
        self.busy = asyncio.Event()

    async def __call__(self, number: int) -> Sample:
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.asked += 1
        self.now += 1
        self.most = max(self.most, self.now)
        if self.now > 1:
            self.busy.set()
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.now -= 1
        return Sample(began, loop.time(), self.seconds / 2, 10, self.error)


async def ran(plan: LoadPlan, answers: Answers):
    course = Course(plan)
    return course, [figures async for figures in run_stages(course, answers)]


async def test_closed_stages_keep_so_many_under_way():
    answers = Answers()
    course, stages = await ran(LoadPlan(Loop.CLOSED, (1, 4), stage_seconds=0.5), answers)
    assert [stage.level for stage in stages] == [1, 4]
    assert answers.most == 4
    assert course.under_way == 0
    assert stages[1].at_once == pytest.approx(4, rel=0.3)
    assert sum(stage.answered for stage in stages) == course.answered == answers.asked


@pytest.mark.parametrize("loop", [Loop.CLOSED, Loop.OPEN])
async def test_no_more_requests_begin_than_were_allowed(loop):
    answers = Answers(0.001)
    course, stages = await ran(LoadPlan(loop, (20, 40, 80), stage_seconds=5, most_requests=37), answers)
    assert course.begun == answers.asked == 37
    assert len(stages) < 3


async def test_open_stages_begin_so_many_a_second_and_the_same_again():
    first, second = Answers(0.001), Answers(0.001)
    plan = LoadPlan(Loop.OPEN, (40,), stage_seconds=1)
    await ran(plan, first)
    await ran(plan, second)
    # A Poisson process of 40 in the mean, drawn from the same seed; those that are due at the end may miss it.
    assert 20 <= first.asked <= 60
    assert abs(first.asked - second.asked) <= 2


async def test_no_more_are_under_way_at_once_than_may_be():
    answers = Answers(0.8)
    _course, stages = await ran(LoadPlan(Loop.OPEN, (200, 200.5, 201), stage_seconds=1.5), answers)
    assert answers.most <= MOST_AT_ONCE
    slow = Answers(5)
    course = Course(LoadPlan(Loop.OPEN, (4_000,), stage_seconds=0.4))
    stages = [figures async for figures in run_stages(course, slow)]
    assert slow.most == MOST_AT_ONCE
    assert stages[0].not_sent > 0


async def test_a_server_that_refuses_at_once_is_not_hammered():
    answers = Answers(0, error="http_429")
    _course, stages = await ran(LoadPlan(Loop.CLOSED, (2,), stage_seconds=0.6), answers)
    assert answers.asked <= 2 * 7
    assert stages[0].failed_share == 1


async def test_cancelled_it_leaves_nothing_under_way():
    answers = Answers(30)
    course = Course(LoadPlan(Loop.CLOSED, (8,), stage_seconds=20))

    async def go() -> None:
        async for _figures in run_stages(course, answers):
            pass

    task = asyncio.create_task(go())
    await answers.busy.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (answers.now, course.under_way) == (0, 0)
