"""The pages of budgets: bars with the finding above them, who may change them, and what bad input is told."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from fleet.costs.budgets.models import Budget
from fleet.costs.budgets.shown import budgets_of
from fleet.costs.spend.spend import spend
from fleet.inventory.plans.blocks import block_launches
from fleet.inventory.plans.models import LaunchBlock, PlannedAction
from fleet.teams.audit import Actor
from tests.fleet.costs.budgets.conftest import NOON

LIST = "/t/acme/costs/budgets/"
FORM = {
    "amount": "5000",
    "currency": "usd",
    "period": "month",
    "actual_thresholds": "50, 80 %; 100",
    "forecast_thresholds": "100",
    "notice_hours": "24",
}


def text(answer) -> str:
    return str(answer.content.decode())


@pytest.fixture
def send(as_user, alice, clock):
    return lambda address=f"{LIST}add/", **values: as_user(alice).post(address, {**FORM, **values})


class TestList:
    def test_the_heading_says_the_finding(self, budget, spent, judge, as_user, vera):
        vision = budget()
        spent(600)
        judge(vision)
        page = text(as_user(vera).get(LIST))
        assert "No budget will be passed" in page
        assert "$600" in page
        assert "of $1,000" in page
        assert "60% spent, will reach 60%" in page

    def test_one_that_is_spent_is_named_and_said_to_be_closed(self, budget, spent, judge, as_user, vera, project):
        vision = budget(project=project, hard=True)
        spent(1200, project=project)
        judge(vision)
        page = text(as_user(vera).get(LIST))
        assert "1 budget is spent: Vision" in page
        assert "$200 over" in page
        assert "closed" in page
        assert "100 % spent" in page

    def test_viewers_and_operators_read(self, budget, as_user, vera, bob):
        one = budget()
        for user in (vera, bob):
            assert "Add a budget" not in text(as_user(user).get(LIST))
            assert as_user(user).get(f"{LIST}{one.pk}/").status_code == 403
            assert as_user(user).post(f"{LIST}add/", FORM).status_code == 403

    def test_another_team_sees_nothing(self, budget, as_user, charlie):
        one = budget()
        assert [as_user(charlie).get(address).status_code for address in (LIST, f"{LIST}{one.pk}/")] == [404, 404]

    def test_what_it_says_is_what_spend_says(self, budget, spent, acme, project):
        budget(project=project)
        budget()
        spent("12.34", project=project)
        spent("1.01")
        lines = {line.name: line.spent for line in budgets_of(acme, NOON)}
        november = spend(team=acme, start=date(2026, 11, 1), end=date(2026, 12, 1)).all.total
        assert lines == {"Vision": Decimal("12.34"), "Acme": november}

    def test_more_budgets_cost_no_more_queries(self, budget, spent, acme, project, bob, django_assert_num_queries):
        budget()
        with django_assert_num_queries(4):
            budgets_of(acme, NOON)
        budget(project=project)
        budget(owner=bob)
        with django_assert_num_queries(4):
            budgets_of(acme, NOON)

    def test_the_page_of_costs_has_them(self, budget, as_user, vera):
        budget()
        page = text(as_user(vera).get("/t/acme/costs/"))
        assert 'id="budgets"' in page
        assert 'id="budgets"' not in text(as_user(vera).get("/t/acme/costs/?month=2026-10"))


class TestForm:
    def test_what_is_typed_is_kept(self, send, project):
        assert send(project=project.pk, hard="on").status_code == 302
        one = Budget.objects.get()
        assert [one.name, one.amount, one.currency, one.project] == ["Vision", 5000, "USD", project]
        assert (one.actual_thresholds, one.forecast_thresholds, one.hard, one.stops) == ([50, 80, 100], [100], True, False)  # fmt: skip

    @pytest.mark.parametrize(
        ("field", "values"),
        [
            ("amount", {"amount": "0"}),
            ("amount", {"amount": "much"}),
            ("currency", {"currency": "$"}),
            ("actual_thresholds", {"actual_thresholds": "half"}),
            ("actual_thresholds", {"actual_thresholds": "5000"}),
            ("actual_thresholds", {"actual_thresholds": "", "forecast_thresholds": ""}),
            ("starts_on", {"period": "custom"}),
            ("ends_on", {"period": "custom", "starts_on": "2026-12-01", "ends_on": "2026-12-01"}),
            ("ends_on", {"ends_on": "2026-12-01"}),
            ("stops", {"stops": "on"}),
            ("notice_hours", {"notice_hours": "0"}),
        ],
    )
    def test_bad_input_names_its_field_and_keeps_the_rest(self, send, field, values):
        answer = send(name="My own", **values)
        assert answer.status_code == 422
        assert f"id_{field}_error" in text(answer)
        assert "My own" in text(answer)
        assert not Budget.objects.exists()

    def test_one_of_a_project_or_a_person_not_of_both(self, send, project, bob):
        answer = send(project=project.pk, owner=bob.pk)
        assert "id_owner_error" in text(answer)

    def test_names_are_taken_once(self, send):
        send()
        assert "There is a budget of this name already" in text(send())
        assert Budget.objects.count() == 1

    def test_it_is_changed_and_removed(self, send):
        send()
        one = Budget.objects.get()
        assert send(f"{LIST}{one.pk}/", amount="9000").status_code == 302
        one.refresh_from_db()
        assert [one.amount, one.revision] == [9000, 2]
        assert send(f"{LIST}{one.pk}/remove/").status_code == 302
        assert send(f"{LIST}{one.pk}/").status_code == 404


class TestTakingBack:
    @pytest.fixture
    def written(self, acme, make_instance):
        block_launches(actor=Actor.system("budgets"), team=acme, source="budget:1", reason="it is spent", now=NOON)
        machine = make_instance()
        PlannedAction.objects.create(
            team=acme, instance=machine, verb="stop", due_at=NOON, source="budget:1", reason="spent"
        )

    def test_an_admin_gives_a_reason(self, written, as_user, alice):
        block, plan = LaunchBlock.objects.get(), PlannedAction.objects.get()
        admin = as_user(alice)
        for address in (f"/t/acme/costs/blocks/{block.pk}/lift/", f"/t/acme/costs/planned/{plan.pk}/cancel/"):
            admin.post(address, {"reason": "  "})
        block.refresh_from_db()
        assert block.lifted_at is None
        admin.post(f"/t/acme/costs/blocks/{block.pk}/lift/", {"reason": "paid for"})
        admin.post(f"/t/acme/costs/planned/{plan.pk}/cancel/", {"reason": "paid for"})
        assert LaunchBlock.objects.get().lifted_reason == PlannedAction.objects.get().ended_reason == "paid for"
        assert "paid for" in text(admin.get(LIST))

    def test_the_page_says_who_was_not_told(self, written, as_user, vera):
        page = text(as_user(vera).get(LIST))
        assert "carried out after their notice" in page
        assert "not told yet" in page
