"""When another attempt follows the end of one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from jobs.runner.restarts import LONGEST_WAIT, Ended, Policy, in_a_row, wait_before_next

SHORT, LONG = timedelta(minutes=1), timedelta(hours=3)
NOW = timedelta(0)
SERVER = Policy(most_restarts=3)


def failed(ran: timedelta = SHORT, why: str = "exit") -> Ended:
    return Ended("failed", why, ran)


@pytest.mark.parametrize(
    ("ended", "policy", "wait"),
    [
        ([failed()], Policy(), None),
        ([failed()], Policy(retries=1), NOW),
        ([failed(), failed()], Policy(retries=1), None),
        ([Ended("lost", "rebooted", SHORT)], Policy(retries=1), NOW),
        ([Ended("succeeded", "", SHORT)], Policy(retries=1), None),
        ([Ended("stopped", "asked", SHORT)], Policy(retries=1), None),
        ([failed(why="not_prepared")], Policy(retries=1), None),
        ([Ended("lost", "machine_gone", SHORT)], SERVER, None),
        # A server is to answer: whatever it ended with, it is started anew, each time after a longer while.
        ([Ended("succeeded", "", SHORT)], SERVER, timedelta(seconds=10)),
        ([failed(), failed()], SERVER, timedelta(seconds=20)),
        ([failed()] * 4, SERVER, None),
        ([failed()] * 9, Policy(most_restarts=20), LONGEST_WAIT),
        ([failed(), failed(), failed(LONG)], SERVER, timedelta(seconds=10)),
        ([failed()], Policy(most_restarts=0), None),
        ([Ended("stopped", "asked", LONG)], SERVER, None),
        # A person's restart is no failure, is never refused, and counts for nothing.
        ([Ended("stopped", "restart", SHORT)], Policy(), NOW),
        ([failed(), Ended("stopped", "restart", SHORT)], Policy(retries=1), NOW),
        ([Ended("stopped", "restart", SHORT), failed()], Policy(retries=1), NOW),
    ],
)
def test_what_follows_an_end(ended, policy, wait):
    assert wait_before_next(ended, policy) == wait


def test_restarts_in_a_row_are_counted_from_the_last_long_run():
    assert in_a_row([failed()]) == 0
    assert in_a_row([failed(), failed()]) == 1
    assert in_a_row([failed(LONG), failed()]) == 1
    assert in_a_row([failed(), failed(LONG), failed(), failed()]) == 2
    assert in_a_row([failed(), Ended("stopped", "restart", SHORT), failed(), failed()]) == 1
