"""Everything that is planned on one page and over the API: put off, called off, extended, planned by hand, and by whom."""

from __future__ import annotations

from datetime import timedelta
from html import unescape

import pytest

from fleet.alerts.models import Alert
from fleet.idle.policies.models import MachineUse
from fleet.inventory.plans.models import PlannedAction
from fleet.teams.models import AuditEntry
from tests.fleet.idle.planned.conftest import HOUR

pytestmark = pytest.mark.django_db
LIST = "/t/acme/idle/planned/"
API = "/api/v1/planned-actions/"


def page(answer) -> str:
    return unescape(answer.content.decode())


def test_soonest_first_with_countdown_reason_hold_and_who_was_told(plan, hold, as_user, vera):
    plan(hours=30, source="test:2")
    plan(hours=2, told=False)
    hold(hours=5)
    text = page(as_user(vera).get(LIST))
    assert 'data-left="7200"' in text
    assert text.index('data-left="7200"') < text.index("2026-12-01 18:00")
    for words in ("it was agreed", "not told yet", "held until", "a run"):
        assert words in text
    assert "Plan one by hand" not in text


def test_it_is_called_off_with_a_reason(plan, as_user, bob, fresh):
    action = plan(hours=2)
    operator = as_user(bob)
    operator.post(f"{LIST}{action.pk}/cancel/", {"reason": " "})
    assert fresh(action).state == "planned"
    operator.post(f"{LIST}{action.pk}/cancel/", {"reason": "a run"})
    assert (fresh(action).state, fresh(action).ended_by) == ("cancelled", bob)
    assert "a run (bob)" in page(operator.get(LIST))


def test_it_is_put_off_by_hours(plan, as_user, bob, fresh):
    action = plan(hours=2)
    was = action.due_at
    as_user(bob).post(f"{LIST}{action.pk}/postpone/", {"hours": "4"})
    assert fresh(action).due_at == was + 4 * HOUR
    as_user(bob).post(f"{LIST}{action.pk}/postpone/", {"hours": "9000"})
    assert fresh(action).due_at == was + 4 * HOUR
    assert AuditEntry.objects.filter(action="planned_action.postpone").count() == 1


def test_a_machine_may_run_a_day_longer_by_one_click(plan, as_user, bob, fresh, driver):
    action = plan(hours=2, source="lease", ends_at=(driver.now + 2 * HOUR).isoformat())
    as_user(bob).post(f"{LIST}{action.pk}/extend/")
    assert MachineUse.objects.get().lease_until == action.due_at + timedelta(days=1)
    assert fresh(action).ended_reason == "lifted"


def test_only_an_admin_has_a_word_on_what_a_budget_planned(plan, as_user, alice, bob, vera, charlie, fresh):
    action, own = plan(hours=2, source="budget:1"), plan(hours=2)
    for act in ("cancel", "postpone", "extend"):
        answers = [as_user(who).post(f"{LIST}{action.pk}/{act}/", {"reason": "x", "hours": "1"}).status_code for who in (bob, vera, charlie)]  # fmt: skip
        assert answers == [403, 403, 404]
        assert as_user(vera).post(f"{LIST}{own.pk}/{act}/").status_code == 403
    assert as_user(vera).post(LIST, {}).status_code == 403
    as_user(alice).post(f"{LIST}{action.pk}/cancel/", {"reason": "paid for"})
    assert fresh(action).state == "cancelled"


class TestByHand:
    @pytest.fixture
    def typed(self, machine):
        return {"instance": machine.pk, "verb": "stop", "due_at": "2026-11-30T18:00", "reason": "nobody is here"}

    def test_its_owner_is_told(self, typed, machine, as_user, alice, bob, fresh):
        type(machine).objects.update(owner=alice)
        assert as_user(bob).post(LIST, typed).status_code == 302
        action = PlannedAction.objects.get()
        assert (action.notified_at, action.notice, action.planned_by) == (None, timedelta(minutes=30), bob)
        assert Alert.objects.get(cause="machine.planned_act").instance == machine

    def test_whoever_owns_it_knows(self, typed, machine, as_user, bob, driver):
        type(machine).objects.update(owner=bob)
        as_user(bob).post(LIST, typed)
        assert PlannedAction.objects.get().notified_at == driver.now
        assert not Alert.objects.filter(cause="machine.planned_act").exists()

    @pytest.mark.parametrize(
        ("wrong", "field", "says"),
        [
            ({"due_at": "2026-11-30T11:00"}, "due_at", "a moment to come"),
            ({"due_at": ""}, "due_at", "required"),
            ({"reason": " "}, "reason", "required"),
            ({"verb": "terminate"}, "accept_loss", "destroys data"),
        ],
    )
    def test_what_may_not_be_is_told_at_its_field(self, typed, as_user, bob, wrong, field, says):
        answer = as_user(bob).post(LIST, {**typed, **wrong})
        assert answer.status_code == 422
        assert says in str(answer.context["form"].errors[field])
        assert not PlannedAction.objects.exists()

    def test_the_same_is_planned_once(self, typed, as_user, bob):
        as_user(bob).post(LIST, typed)
        assert "planned for this machine already" in page(as_user(bob).post(LIST, typed))
        assert PlannedAction.objects.count() == 1


class TestApi:
    def test_planned_put_off_and_called_off(self, machine, as_user, bob, vera, driver):
        said = {"instance": machine.pk, "verb": "stop", "due_at": "2026-11-30T18:00:00Z", "reason": "holidays"}
        made = as_user(bob).post(API, said, content_type="application/json")
        assert made.status_code == 201, made.content
        assert as_user(vera).post(API, said, content_type="application/json").status_code == 403
        again = as_user(bob).post(API, said, content_type="application/json")
        assert (again.status_code, "due_at" in again.content.decode()) == (400, True)
        address = f"{API}{made.json()['id']}/"
        later = {"until": "2026-11-30T22:00:00Z"}
        put_off = as_user(bob).post(f"{address}postpone/", later, content_type="application/json")
        assert (put_off.status_code, put_off.json()["due_at"]) == (200, "2026-11-30T22:00:00Z")
        twice = as_user(bob).post(f"{address}postpone/", later, content_type="application/json")
        assert twice.status_code == 409
        off = as_user(bob).post(f"{address}cancel/", {"reason": "a run"}, content_type="application/json")
        assert (off.status_code, off.json()["state"]) == (200, "cancelled")
