from __future__ import annotations

from itertools import pairwise

from fleet.sandbox.schedule import HISTORY_SECONDS, outline_times, sample_times, step_seconds

NOW = 1_796_000_003.0


def times(since: float, until: float = NOW, offset: float = 1.3) -> list[float]:
    return list(sample_times(since=since, until=until, now=NOW, interval_seconds=5, offset_seconds=offset))


def test_a_day_is_finest_where_it_is_newest() -> None:
    day = times(NOW - HISTORY_SECONDS)
    steps: dict[str, set[float]] = {"old": set(), "middle": set(), "new": set()}
    for before, after in pairwise(day):
        age = NOW - before
        steps["old" if age > 6 * 3600 else "middle" if age > 3600 else "new"].add(round(after - before, 3))
    assert max(steps["new"]) == 5
    assert max(steps["middle"]) == 30
    assert max(steps["old"]) == 100
    assert len(day) < 2000


def test_going_on_from_anywhere_repeats_the_same_moments() -> None:
    day = times(NOW - HISTORY_SECONDS)
    for cut in (3, 500, 700, 1200, len(day) - 2):
        assert times(day[cut]) == day[cut + 1 :]


def test_an_outline_takes_its_moments_from_the_day() -> None:
    coarse, dense = outline_times(since=0, until=NOW, now=NOW, interval_seconds=5, offset_seconds=1.3)
    assert set(coarse + dense) <= set(times(NOW - HISTORY_SECONDS))
    assert len(coarse) + len(dense) <= 180
    assert outline_times(since=NOW - 7, until=NOW, now=NOW, interval_seconds=5)[0] == []


def test_nothing_lies_outside_the_span() -> None:
    assert times(NOW) == []
    assert all(NOW - 60 < at <= NOW for at in times(NOW - 60))


def test_what_samples_stand_for_fills_every_five_minutes() -> None:
    """Else the demonstration's own history would be drawn as unknown."""
    covered: dict[float, float] = {}
    for at in times(NOW - HISTORY_SECONDS):
        covered[at // 300] = covered.get(at // 300, 0) + step_seconds(NOW - at, 5)
    whole = sorted(covered)[1:-1]
    # Two buckets hold the change from one pace to another.
    assert sum(covered[number] < 300 for number in whole) <= 2
    assert min(covered[number] for number in whole) > 200
