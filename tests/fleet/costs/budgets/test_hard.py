"""What a hard budget does once it is spent: it keeps launches back and plans stops; and what undoes it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.db.backends.postgresql.psycopg_any import DateTimeTZRange

from fleet.alerts.channels.models import Channel, Delivery, Route
from fleet.alerts.models import Alert
from fleet.alerts.planned_acts import note_deliveries
from fleet.costs.attribution.models import AttributionSpan
from fleet.costs.attribution.rules import RuleSaid, add_rule
from fleet.costs.book.models import LedgerChange
from fleet.costs.budgets.judging import judge_one
from fleet.costs.budgets.manage import BudgetWords, remove_budget, update_budget
from fleet.costs.spend.models import CostDay, CostGroupDay, CostMonth
from fleet.inventory.models import Instance
from fleet.inventory.operations.models import Operation
from fleet.inventory.operations.refusals import LaunchBlocked
from fleet.inventory.operations.requests import request_launch, request_start
from fleet.inventory.plans.actions import cancel_action
from fleet.inventory.plans.blocks import lift_block
from fleet.inventory.plans.gate import blocked_starts, blocks_for_page
from fleet.inventory.plans.models import LaunchBlock, PlannedAction
from fleet.inventory.plans.standing import still_stands
from fleet.providers.base import CreateSpec, InstanceState
from fleet.teams.models import Project
from tests.fleet.costs.budgets.conftest import NOON
from tests.fleet.inventory.operations.liar import Liar

HOUR = timedelta(hours=1)
HARD: dict[str, Any] = {"hard": True, "stops": True, "notice_hours": 24}


@pytest.fixture(autouse=True)
def able(monkeypatch, account):
    """The account's provider can stop machines."""
    from fleet.providers import registry

    known = {**registry.adapters(), Liar.kind: Liar}
    for module in ("inventory.adapters", "providers.registry"):
        monkeypatch.setattr(f"fleet.{module}.adapters", lambda: known)
    account.kind, account.monitor_only = Liar.kind, False
    account.save()


@pytest.fixture
def machine(make_instance, bob, project):
    return make_instance(owner=bob, project=project)


@pytest.fixture
def closed(budget, spent, judge, machine, project):
    """The budget of the project is spent."""
    vision = budget(project=project, **HARD)
    spent(1000, project=project)
    judge(vision)
    return vision


def in_force():
    return LaunchBlock.objects.filter(lifted_at=None)


def planned():
    return PlannedAction.objects.filter(state="planned")


def test_it_blocks_launches_of_its_scope_and_says_why(closed, project, acme):
    block = in_force().get()
    assert (block.project, block.account, block.owner, block.source) == (project, None, None, closed.source)
    ((_block, covers, why),) = blocks_for_page(acme.pk)
    assert (covers, why) == (
        "Machines of the project Vision",
        "the budget Vision of $1,000.00 for November 2026 is spent",
    )


def test_a_soft_one_blocks_nothing(budget, spent, judge, machine):
    soft = budget()
    spent(5000)
    judge(soft)
    assert not LaunchBlock.objects.exists()
    assert not PlannedAction.objects.exists()


def test_it_closes_when_all_is_spent_even_if_nobody_asked_to_be_told(budget, spent, judge):
    one = budget(actual_thresholds=(50,), hard=True)
    assert one.actual_thresholds == [50, 100]


class TestPlans:
    def test_each_running_machine_of_it_after_the_notice(self, closed, machine):
        action = planned().get()
        assert (action.instance, action.verb, action.due_at) == (machine, "stop", NOON + timedelta(hours=24))

    def test_none_for_what_is_off_or_somebody_elses_or_nobody_registered(self, budget, spent, judge, make_instance, project, account):  # fmt: skip
        make_instance(name="off", project=project, state=InstanceState.STOPPED, billing="storage")
        make_instance(name="other")
        make_instance(name="wild", project=project, managed=False)
        make_instance(name="gone", project=project, gone_at=NOON)
        vision = budget(project=project, **HARD)
        spent(1000, project=project)
        judge(vision)
        assert not PlannedAction.objects.exists()

    def test_none_where_the_account_may_only_be_looked_at(self, budget, spent, judge, machine, account, project):
        type(account).objects.update(monitor_only=True)
        vision = budget(project=project, **HARD)
        spent(1000, project=project)
        judge(vision)
        assert not PlannedAction.objects.exists()

    def test_without_stops_nothing_is_planned(self, budget, spent, judge, machine):
        spent(1000)
        judge(budget(hard=True))
        assert in_force().count() == 1
        assert not PlannedAction.objects.exists()

    def test_a_machine_that_comes_later_is_planned_too_but_not_one_that_an_admin_wanted(self, closed, judge, make_instance, project, alice, account, acme):  # fmt: skip
        late, wanted = make_instance(name="late", project=project), make_instance(name="wanted", project=project)
        Operation.objects.create(
            team=acme, account=account, instance=wanted, kind="launch", token="t", override_reason="paid for",
            requested_at=NOON + timedelta(hours=1),
        )  # fmt: skip
        judge(closed, 2)
        assert {action.instance.name for action in planned()} == {"train-01", late.name}

    def test_what_went_off_meanwhile_needs_no_stop(self, closed, judge, machine):
        Instance.objects.update(state=InstanceState.STOPPED)
        judge(closed, 1)
        assert not planned().exists()
        assert PlannedAction.objects.get().ended_reason == "gone"


class TestOwnersAreTold:
    @pytest.fixture
    def channel(self, acme, bob):
        own = Channel.objects.create(team=acme, owner=bob, kind="webhook", name="bob's")
        Route.objects.create(channel=own, only_mine=True)
        return own

    def test_on_their_own_channel_and_the_notice_counts_from_then(self, channel, closed):
        delivery = Delivery.objects.get(alert__cause="machine.planned_act")
        assert delivery.channel == channel
        assert note_deliveries() == 0
        Delivery.objects.update(state="sent", sent_at=NOON + timedelta(hours=3))
        assert note_deliveries() == 1
        action = planned().get()
        assert (action.notified_at, action.due_at) == (NOON + timedelta(hours=3), NOON + timedelta(hours=27))

    def test_a_message_to_others_does_not_tell_an_owner_with_a_channel(self, channel, closed, acme):
        team_channel = Channel.objects.create(team=acme, kind="webhook", name="ops")
        alert = Alert.objects.get(cause="machine.planned_act")
        Delivery.objects.create(channel=team_channel, alert=alert, state="sent", sent_at=NOON)
        assert note_deliveries() == 0

    def test_an_owner_without_one_reads_the_teams(self, closed, acme):
        team_channel = Channel.objects.create(team=acme, kind="webhook", name="ops")
        alert = Alert.objects.get(cause="machine.planned_act")
        Delivery.objects.create(channel=team_channel, alert=alert, state="sent", sent_at=NOON)
        assert note_deliveries() == 1


class TestStillMeant:
    """Asked right before a stop: whoever judges budgets may have been down."""

    def test_while_the_budget_is_spent(self, closed):
        assert still_stands(planned().get(), NOON + timedelta(hours=24))

    def test_not_in_its_next_period(self, closed):
        assert not still_stands(planned().get(), NOON + timedelta(days=20))

    def test_not_when_it_was_changed_or_removed_or_the_machine_is_anothers(self, closed, machine):
        action = planned().get()
        for change in ({"stops": False}, {"revision": 7}, {"removed_at": NOON}):
            before = {name: getattr(closed, name) for name in change}
            type(closed).objects.update(**change)
            assert not still_stands(action, NOON)
            type(closed).objects.update(**before)
        assert still_stands(action, NOON)
        type(machine).objects.update(project=None)
        assert not still_stands(action, NOON)


class TestUndone:
    def assert_open(self):
        assert not in_force().exists()
        assert not planned().exists()
        assert not Alert.objects.filter(closed_at=None, cause="machine.planned_act").exists()

    def test_by_raising_it(self, closed, by_alice, project):
        words = BudgetWords(amount=Decimal(5000), currency="USD", project=project, forecast_thresholds=(), **HARD)
        update_budget(actor=by_alice, budget=closed, words=words, now=NOON)
        self.assert_open()
        assert PlannedAction.objects.get().ended_reason == "lifted"

    def test_by_its_period_being_over(self, closed, judge):
        judge(closed, 24 * 20)
        self.assert_open()

    def test_by_removing_it(self, closed, by_alice):
        remove_budget(actor=by_alice, budget=closed, now=NOON)
        self.assert_open()

    def test_by_a_refund_well_below(self, closed, judge, spent, project):
        spent(-40, project=project)
        judge(closed, 1)
        assert in_force().exists()
        spent(-20, project=project)
        judge(closed, 2)
        self.assert_open()
        spent(60, project=project)
        judge(closed, 3)
        assert in_force().count() == planned().count() == 1

    def test_not_by_days_that_are_being_summed_again(self, closed, judge, account):
        for rows in (CostDay, CostGroupDay, CostMonth):
            rows.objects.all().delete()
        asked = LedgerChange.objects.create(account=account, from_at=NOON - timedelta(days=40))
        judge(closed, 1)
        assert in_force().count() == planned().count() == 1
        asked.delete()
        judge(closed, 2)
        self.assert_open()


class TestWhatPeopleTakeBack:
    def test_a_stop_that_was_called_off_is_not_planned_again(self, closed, judge, by_alice):
        cancel_action(actor=by_alice, action=planned().get(), reason="paid for", now=NOON)
        judge(closed, 1)
        assert not planned().exists()

    def test_a_block_that_was_lifted_stays_so_in_this_period(self, closed, judge, by_alice, spent, project):
        lift_block(actor=by_alice, block=in_force().get(), reason="paid for", now=NOON)
        judge(closed, 1)
        assert not in_force().exists()


class TestChanged:
    """A spent budget is changed, and is spent still."""

    @pytest.fixture
    def change(self, closed, by_alice):
        def to(**words):
            said = {"amount": Decimal(900), "currency": "USD", "forecast_thresholds": (), **HARD, **words}
            return update_budget(actor=by_alice, budget=closed, words=BudgetWords(**said), now=NOON + HOUR)

        return to

    def test_it_blocks_what_it_is_of_now(self, change, project, acme, spent, make_instance):
        other = Project.objects.create(team=acme, name="Speech", slug="speech")
        moved = make_instance(name="speech-01", project=other)
        spent(900, project=other)
        change(project=other)
        assert in_force().get().project == other
        assert planned().get().instance == moved

    def test_without_stops_what_it_planned_is_called_off(self, change, project):
        change(project=project, stops=False)
        assert in_force().count() == 1
        assert not planned().exists()
        assert not Alert.objects.filter(closed_at=None, cause="machine.planned_act").exists()

    def test_what_people_take_back_after_it_stays_so(self, change, closed, judge, by_alice, project):
        change(project=project)
        lift_block(actor=by_alice, block=in_force().get(), reason="paid for", now=NOON + 2 * HOUR)
        cancel_action(actor=by_alice, action=planned().get(), reason="paid for", now=NOON + 2 * HOUR)
        judge(closed, 3)
        assert not in_force().exists()
        assert not planned().exists()


class TestWhoseMachines:
    def test_one_that_was_given_to_another_project_is_left_alone(self, closed, judge, machine, acme):
        machine.project = Project.objects.create(team=acme, name="Speech", slug="speech")
        machine.save()
        judge(closed, 1)
        assert not planned().exists()

    def test_one_that_a_rule_gives_to_the_project_is_planned_too(self, closed, judge, make_instance, acme, project):
        ruled = make_instance(name="ruled")
        AttributionSpan.objects.create(
            instance=ruled, period=DateTimeTZRange(NOON, None), project=project, source="rule"
        )
        judge(closed, 1)
        assert {action.instance.name for action in planned()} == {"train-01", "ruled"}


class TestMachinesOfRules:
    """A rule gives "ruled-…" to the project; people set nothing on them."""

    @pytest.fixture(autouse=True)
    def ruled(self, acme, by_alice, project, make_instance, clock):
        machine = make_instance(name="ruled-01", state=InstanceState.STOPPED, billing="storage")
        add_rule(actor=by_alice, team=acme, said=RuleSaid(name_pattern="ruled-*", project=project), now=NOON)
        return machine

    def test_they_are_not_started(self, ruled, closed, by_alice):
        assert set(blocked_starts([ruled])) == {ruled.pk}
        with pytest.raises(LaunchBlocked, match="project Vision"):
            request_start(actor=by_alice, instance=ruled, now=NOON)

    def test_none_is_launched_by_a_name_that_the_rule_gives_to_it(self, closed, by_alice, account):
        named = CreateSpec(name="ruled-02", offer_id="h100x8")
        with pytest.raises(LaunchBlocked, match="project Vision"):
            request_launch(actor=by_alice, account=account, spec=named, offer={})
        other = CreateSpec(name="other", offer_id="h100x8")
        assert request_launch(actor=by_alice, account=account, spec=other, offer={}).pk

    def test_one_that_a_rule_gives_to_another_may_be_started(self, acme, closed, by_alice, make_instance):
        free = make_instance(name="free-01", state=InstanceState.STOPPED, billing="storage")
        other = Project.objects.create(team=acme, name="Other", slug="other")
        add_rule(actor=by_alice, team=acme, said=RuleSaid(name_pattern="free-*", project=other), now=NOON)
        assert blocked_starts([free]) == {}
        assert request_start(actor=by_alice, instance=free, now=NOON).kind == "start"


class TestAgain:
    def test_a_judge_that_died_half_way_left_nothing_and_is_followed(self, budget, spent, judge, machine, project, monkeypatch):  # fmt: skip
        from fleet.costs.budgets import judging

        vision = budget(project=project, **HARD)
        spent(1000, project=project)
        with monkeypatch.context() as patch:
            patch.setattr(judging, "close", lambda *_args, **_more: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                judge(vision)
        assert not vision.crossings.exists()
        assert not Alert.objects.exists()
        judge(vision)
        assert (vision.crossings.count(), in_force().count(), planned().count()) == (3, 1, 1)

    def test_judging_again_writes_nothing_more(self, closed, judge):
        for hours in (1, 2):
            judge(closed, hours)
        assert (LaunchBlock.objects.count(), PlannedAction.objects.count()) == (1, 1)


@pytest.mark.django_db(transaction=True)
def test_two_judges_at_once_reach_write_and_plan_once(budget, spent, machine, project):
    vision = budget(project=project, **HARD)
    spent(1000, project=project)
    barrier = Barrier(4)

    def one(_number):
        try:
            barrier.wait(timeout=20)
            return len(judge_one(budget_id=vision.pk, now=NOON).fired)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        fired = sorted(pool.map(one, range(4)))
    assert fired == [0, 0, 0, 3]
    assert (vision.crossings.count(), in_force().count(), planned().count()) == (3, 1, 1)
    assert Alert.objects.filter(cause="budget.reached").count() == 1
