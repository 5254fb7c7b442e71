"""Costs, "Saved by stopping": by machine and stop, of the month that is shown, with what it is compared with."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from tests.fleet.pages.conftest import HELD

NOW = datetime(2026, 11, 17, 8, 42, tzinfo=UTC)


@pytest.fixture(autouse=True)
def frozen():
    with time_machine.travel(NOW, tick=False):
        yield


def section(client, address="/t/acme/costs/"):
    body = client.get(address).content.decode()
    found = re.search(r'<section class="panel" id="stopped">.*?</section>', body, re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found[0])).split()) if found else ""


def test_without_a_stop_there_is_no_section(alice, as_user, acme):
    assert section(as_user(alice)) == ""


def test_each_stop_stands_there_the_dearest_first(alice, as_user, make_machine, saving_of, stop_of):
    small, large = make_machine(name="small", readings=[HELD]), make_machine(name="large", readings=[HELD] * 4)
    saving_of(small, hours=2, price="1.00", stop=stop_of(small, "stopped", policy_name="Nights"))
    saving_of(large, hours=10, price="8.00", grows=True)
    said = section(as_user(alice))
    assert said.startswith("$82.00 saved by stopping in November")
    assert said.index("large") < said.index("small")
    assert "still off as planned off for 10 h that would have cost $8.00 an hour $80.00" in said
    assert "Nights off for 2 h" in said
    assert "42 GPU-hours were not paid for." in said


def test_a_saving_over_the_turn_of_the_month_is_split(alice, as_user, make_machine, saving_of):
    start = datetime(2026, 10, 31, 20, tzinfo=UTC)
    end = start + timedelta(hours=10)
    saving_of(make_machine(readings=[HELD]), hours=10, price="2.00", since=start, counted_until=end, until=end)
    assert "$12.00 saved by stopping in November" in section(as_user(alice))
    assert "$8.00 saved by stopping in October" in section(as_user(alice), "/t/acme/costs/?month=2026-10")
    assert "Nothing was saved by stopping in September" in section(as_user(alice), "/t/acme/costs/?month=2026-09")


def test_a_saving_ends_after_a_week(alice, as_user, make_machine, saving_of):
    end = NOW - timedelta(days=1)
    since = end - timedelta(days=7)
    saving_of(make_machine(readings=[HELD]), hours=168, since=since, counted_until=end, until=end, most_until=end)
    said = section(as_user(alice))
    assert said.startswith("$1,344.00 saved")
    assert "counted for a week, which is as far as it goes" in said


def test_of_an_unknown_price_the_saving_is_not_known(alice, as_user, make_machine, saving_of):
    saving_of(make_machine(readings=[HELD]), price=None)
    said = section(as_user(alice))
    assert "what an hour would have cost is not known" in said
    assert "unknown" in said


def test_another_team_sees_nothing(charlie, as_user, make_machine, saving_of):
    saving_of(make_machine(readings=[HELD]))
    assert section(as_user(charlie), "/t/rival/costs/") == ""
