"""`spend`: told apart by every dimension, filtered, over any span, always the same money."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from itertools import combinations
from typing import Any

import pytest

from fleet.costs.spend.spend import By, Where, spend
from fleet.costs.spend.tally import add_up
from fleet.inventory.models import ProviderAccount
from fleet.states import GpuState
from tests.fleet.costs.seeding import spend_on

JANUARY, MARCH = date(2026, 1, 1), date(2026, 3, 1)


@pytest.fixture
def winter(acme, account, project, alice, make_instance):
    """Two machines and a volume from the middle of December to the beginning of March, with odd digits."""
    one = make_instance(name="train-01", gpu_model="H100", market="on_demand", region="eu")
    two = make_instance(name="train-02", gpu_model="A100", market="spot", region="us")
    far = ProviderAccount.objects.create(team=acme, kind="vast", name="Far")
    for number, day in enumerate(days(date(2025, 12, 14), date(2026, 3, 3))):
        odd = Decimal(number) / 7
        odd = odd.quantize(Decimal("1e-14"))
        states = {GpuState.WORKING: odd, GpuState.FREE: Decimal("0.25"), GpuState.STALLED: Decimal("0.1")}
        spend_on(
            acme,
            day,
            odd + Decimal("0.35"),
            instance=one,
            project=project,
            owner=alice,
            labels={"stage": "train"},
            states=states,
            gpu_seconds={GpuState.WORKING: 3600.0, GpuState.FREE: 1800.0},
        )
        spend_on(acme, day, "1.01", instance=two, state=GpuState.HELD_IDLE, labels={"stage": "serve"}, job="llm")
        spend_on(acme, day, "0.02", instance=two, meter="disk_stopped", state=GpuState.STOPPED, unpriced_seconds=60.0)
        spend_on(acme, day, "0.5", account=far, meter="network_volume", state=GpuState.UNKNOWN)
    return one, two, far


def days(start: date, end: date) -> list[date]:
    return [date.fromordinal(number) for number in range(start.toordinal(), end.toordinal())]


class TestDimensions:
    def test_every_pair_of_dimensions_adds_up_to_the_same(self, acme, winter, subtests):
        whole = spend(team=acme, start=JANUARY, end=MARCH).all
        assert whole.total == sum(
            (Decimal(number) / 7).quantize(Decimal("1e-14")) + Decimal("1.88") for number in range(18, 77)
        )
        for pair in combinations(By, 2):
            with subtests.test(pair=pair):
                found = spend(team=acme, start=JANUARY, end=MARCH, by=pair, label="stage")
                assert found.all == whole
                assert add_up([one.total for one in found.rows.values()]) == whole.total
                assert sum(one.unpriced_seconds for one in found.rows.values()) == whole.unpriced_seconds
                assert all(add_up(list(one.states.values())) == one.total for one in found.rows.values())

    def test_the_values_are_ids_words_and_dates_and_the_largest_comes_first(self, acme, winter, project, alice):
        one, two, far = winter

        def keys(by: By) -> list[object]:
            return [key for (key,) in spend(team=acme, start=JANUARY, end=MARCH, by=[by], label="stage").rows]

        assert keys(By.PROJECT) == [project.pk, None]
        assert keys(By.OWNER) == [alice.pk, None]
        assert keys(By.MACHINE) == [one.pk, two.pk, None]
        assert keys(By.ACCOUNT) == [one.account_id, far.pk]
        assert keys(By.PROVIDER) == ["manual", "vast"]
        assert keys(By.METER) == ["compute", "network_volume", "disk_stopped"]
        assert keys(By.LABEL) == ["train", "serve", None]
        assert keys(By.GPU_MODEL) == ["H100", "A100", ""]
        assert keys(By.JOB) == ["", "llm"]
        assert keys(By.MONTH) == [date(2026, 2, 1), date(2026, 1, 1)]
        assert len(keys(By.DAY)) == 59

    def test_states_are_a_dimension_beside_others(self, acme, winter):
        one, two, _far = winter
        found = spend(team=acme, start=JANUARY, end=date(2026, 1, 3), by=[By.STATE, By.MACHINE]).rows
        assert found[GpuState.HELD_IDLE, two.pk].total == Decimal("2.02")
        assert found[GpuState.HELD_IDLE, two.pk].idle == Decimal("2.02")
        assert found[GpuState.FREE, one.pk].gpu_seconds == {GpuState.FREE: 3600.0}
        assert found[GpuState.STOPPED, two.pk].amounts == {"USD": Decimal("0.04")}
        assert found[GpuState.UNKNOWN, two.pk].unpriced_seconds == 120.0
        assert (GpuState.STARVED, one.pk) not in found

    def test_a_sum_says_what_idled_and_what_bought_nothing(self, acme, winter):
        one = spend(team=acme, start=JANUARY, end=date(2026, 1, 2)).all
        assert (one.idle, one.bought_nothing) == (Decimal("1.26"), Decimal("1.36"))

    def test_a_label_needs_its_name(self, acme):
        with pytest.raises(ValueError, match="which label"):
            spend(team=acme, start=JANUARY, end=MARCH, by=[By.LABEL])


class TestSpans:
    @pytest.mark.parametrize(
        ("start", "end"),
        [
            (date(2025, 12, 20), date(2026, 3, 2)),
            (JANUARY, MARCH),
            (date(2026, 1, 2), date(2026, 1, 30)),
            (date(2026, 1, 15), date(2026, 2, 15)),
            (JANUARY, JANUARY),
        ],
    )
    def test_whole_months_and_the_days_around_them_are_what_the_days_are(self, acme, winter, start, end):
        by_machine = spend(team=acme, start=start, end=end, by=[By.MACHINE])
        by_day = spend(team=acme, start=start, end=end, by=[By.DAY, By.MACHINE])
        assert by_machine.all == by_day.all == spend(team=acme, start=start, end=end).all

    def test_questions_take_two_queries_whatever_is_asked(self, acme, winter, django_assert_num_queries):
        for by in ([], [By.DAY], [By.MACHINE, By.STATE], [By.MONTH, By.PROJECT, By.LABEL]):
            with django_assert_num_queries(2):
                spend(team=acme, start=JANUARY, end=MARCH, by=by, label="stage")


class TestFilters:
    def test_each_filter_leaves_what_it_names(self, acme, winter, project, alice):
        one, two, far = winter

        def left(**filters: Any) -> Decimal:
            return spend(team=acme, start=JANUARY, end=date(2026, 1, 2), where=Where(**filters)).all.total

        first = (Decimal(18) / 7).quantize(Decimal("1e-14")) + Decimal("0.35")
        assert left(projects=(project.pk,)) == left(owners=(alice.pk,)) == left(instances=(one.pk,)) == first
        assert left(projects=(None,)) == Decimal("1.53")
        assert left(projects=(None, project.pk)) == first + Decimal("1.53")
        assert left(accounts=(far.pk,)) == left(meters=("network_volume",)) == Decimal("0.5")
        assert left(labels={"stage": "serve"}) == Decimal("1.01")
        assert left(instances=(two.pk,), meters=("compute",)) == Decimal("1.01")
        assert left(labels={"stage": "serve", "more": "x"}) == 0

    def test_other_teams_see_nothing(self, rival, winter):
        assert spend(team=rival, start=JANUARY, end=MARCH, by=[By.MACHINE]).rows == {}


class TestTheMonthThatIsNotOver:
    def test_it_is_read_as_a_whole_unless_something_of_it_lies_beyond(self, acme, winter, django_assert_num_queries):
        """Days until the second of March are there: a span that ends with the third has all of March, one that ends with the second has not."""
        for end in (date(2026, 3, 3), date(2026, 3, 2), date(2026, 3, 20)):
            found = spend(team=acme, start=date(2026, 2, 20), end=end, by=[By.MACHINE])
            assert found.all == spend(team=acme, start=date(2026, 2, 20), end=end, by=[By.DAY, By.MACHINE]).all
