from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone, translation

from fleet.templatetags.rackrent import age, recent_clock

NOW = "2026-11-17T09:14:00Z"


@pytest.fixture(autouse=True)
def _frozen(time_machine):
    time_machine.move_to(NOW, tick=False)


def drawn(seconds, period=0.0, label=""):
    return age(timezone.now() - timedelta(seconds=seconds), period, label)


def test_it_says_how_old_and_keeps_the_moment():
    assert ">25 s</time>" in drawn(25)
    assert 'datetime="2026-11-17T09:13:35+00:00"' in drawn(25)


def test_it_looks_old_after_three_reading_periods():
    assert 'class="age"' in drawn(30, 10)
    assert 'class="age old"' in drawn(31, 10)


def test_a_figure_without_a_period_never_looks_old():
    assert 'class="age"' in drawn(864_000)


def test_never_read_is_said():
    assert age(None, 10) == '<span class="age old">never</span>'


def test_a_label_is_escaped():
    assert "&lt;b&gt;" in drawn(3, 0, "<b>")


@pytest.mark.parametrize(("seconds", "words"), [(25, "25 秒"), (720, "12 分"), (18_000, "5 时"), (259_200, "3 天")])
def test_it_speaks_chinese(seconds, words):
    with translation.override("zh-hans"):
        assert f">{words}</time>" in drawn(seconds)


def test_a_clock_names_the_day_unless_it_is_today():
    at = timezone.now()
    assert ">09:14</time>" in recent_clock(at)
    assert ">Mon 09:14</time>" in recent_clock(at - timedelta(days=1))


def test_today_is_the_reader_s():
    at = timezone.now()
    with timezone.override("Pacific/Auckland"):
        assert ">22:14</time>" in recent_clock(at)
        assert ">Mon 22:14</time>" in recent_clock(at - timedelta(days=1))
        assert ">Mon 23:59</time>" in recent_clock(at - timedelta(hours=22, minutes=15))
