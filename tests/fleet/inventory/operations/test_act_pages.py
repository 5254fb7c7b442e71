"""The question before an act, on a page that needs no script: what it costs and loses, what must be typed, who is refused and why."""

from __future__ import annotations

import pytest

from fleet.inventory.machines import place_hold
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.models import Operation
from fleet.teams.audit import Actor
from tests.fleet.inventory.operations.liar import Liar

KEY = "0123456789abcdef"


@pytest.fixture
def ask(machine, as_user):
    """ask(bob, "stop") gives the page; with values it is sent."""

    def send(user, kind, **values):
        address = f"/t/acme/instances/{machine.pk}/act/{kind}/"
        return as_user(user).post(address, {"key": KEY, **values}) if values else as_user(user).get(address)

    return send


def text(answer) -> str:
    return str(answer.content.decode())


def test_a_stop_says_what_it_saves_and_what_goes_on(ask, bob):
    page = text(ask(bob, "stop"))
    assert "Stop " in page
    assert "an hour goes on." in page
    assert "machine_name" not in page


def test_asking_writes_nothing(ask, bob, world):
    ask(bob, "terminate")
    assert not Operation.objects.exists()
    assert world.calls == []


def test_a_stop_is_begun_and_leads_to_the_machine(ask, bob, machine):
    answer = ask(bob, "stop", key=KEY)
    assert answer.headers["Location"] == f"/t/acme/instances/{machine.pk}/"
    operation = Operation.objects.get()
    assert (operation.kind, operation.state, operation.requested_label) == ("stop", "requested", "bob")


def test_a_double_click_begins_nothing_twice(ask, bob):
    assert ask(bob, "stop", key=KEY).status_code == ask(bob, "stop", key=KEY).status_code == 302
    assert Operation.objects.count() == 1


@pytest.mark.parametrize("typed", ["", "another"])
def test_what_destroys_data_needs_the_name_of_the_machine(ask, bob, machine, typed):
    answer = ask(bob, "terminate", machine_name=typed)
    assert answer.status_code == 422
    assert "id_machine_name_error" in text(answer)
    assert not Operation.objects.exists()
    assert ask(bob, "terminate", machine_name=machine.name).status_code == 302
    assert Operation.objects.get().kind == "terminate"


def test_an_image_takes_a_name(ask, bob):
    assert "Use 3 to 60" in text(ask(bob, "save_image", name="no spaces please"))
    assert ask(bob, "save_image", name="eval-2026").status_code == 302
    assert Operation.objects.get().spec == {"name": "eval-2026"}


class TestHeld:
    @pytest.fixture(autouse=True)
    def hold(self, machine, bob, driver):
        place_hold(actor=Actor(bob, "bob", "page"), instance=machine, owner=bob, reason="evaluation", now=driver.now)

    def test_an_operator_is_told_and_given_no_button(self, ask, bob):
        page = text(ask(bob, "stop"))
        assert "evaluation" in page
        assert "Back to the machine" in page
        assert ask(bob, "stop", override_reason="I want it").status_code == 422
        assert not Operation.objects.exists()

    def test_an_admin_says_why_and_it_is_kept(self, ask, alice):
        assert "id_override_reason_error" in text(ask(alice, "stop", override_reason=""))
        assert ask(alice, "stop", override_reason="the run is over").status_code == 302
        assert Operation.objects.get().override_reason == "the run is over"

    def test_a_hold_counts_for_a_restart_too(self, ask, bob, alice):
        assert ask(bob, "reboot", key=KEY).status_code == 422
        assert ask(alice, "reboot", key=KEY, override_reason="it hangs").status_code == 302
        assert Operation.objects.get().override_reason == "it hangs"


class TestCannot:
    def test_an_account_for_looking_only_is_explained_and_has_no_button(self, ask, bob, machine, as_user):
        ProviderAccount.objects.update(monitor_only=True)
        assert "is for looking only" in text(ask(bob, "stop"))
        page = text(as_user(bob).get(f"/t/acme/instances/{machine.pk}/"))
        assert "is for looking only" in page
        assert f"/t/acme/instances/{machine.pk}/act/" not in page

    def test_a_missing_capability_is_explained_beside_those_that_are_there(self, bob, machine, as_user, monkeypatch):
        monkeypatch.setattr(Liar, "capabilities", Liar.capabilities - {"stop"})
        page = text(as_user(bob).get(f"/t/acme/instances/{machine.pk}/"))
        assert "only terminate them" in page
        assert "/act/stop/" not in page
        assert "/act/terminate/" in page

    def test_what_nobody_registered_leads_to_registering(self, bob, machine, as_user):
        Instance.objects.update(managed=False)
        page = text(as_user(bob).get(f"/t/acme/instances/{machine.pk}/"))
        assert "Nobody registered" in page
        assert f"/t/acme/instances/{machine.pk}/edit/" in page

    def test_what_is_under_way_is_named(self, ask, bob):
        ask(bob, "save_image", name="eval-2026")
        assert "still under way" in text(ask(bob, "stop"))
        assert ask(bob, "stop", key="f" * 16).status_code == 422

    def test_a_viewer_sees_no_actions_and_the_progress(self, ask, bob, vera, machine, as_user):
        ask(bob, "stop", key=KEY)
        page = text(as_user(vera).get(f"/t/acme/instances/{machine.pk}/"))
        assert "/act/" not in page
        assert "data-open-operation" in page
        assert ask(vera, "stop").status_code == ask(vera, "stop", key=KEY).status_code == 403

    def test_another_team_sees_nothing(self, ask, charlie, bob):
        ask(bob, "stop", key=KEY)
        assert ask(charlie, "stop").status_code == ask(charlie, "stop", key=KEY).status_code == 404

    @pytest.mark.parametrize("word", ["launch", "explode"])
    def test_an_act_that_is_none(self, ask, bob, word):
        assert ask(bob, word).status_code == 404


def test_acts_are_offered_that_make_sense(machine, bob, as_user):
    running = text(as_user(bob).get(f"/t/acme/instances/{machine.pk}/"))
    assert "/act/stop/" in running
    assert "/act/start/" not in running
    Instance.objects.update(state="stopped", billing="storage")
    stopped = text(as_user(bob).get(f"/t/acme/instances/{machine.pk}/"))
    assert "/act/start/" in stopped
    assert "/act/stop/" not in stopped


def test_a_scripts_request_gets_the_question_for_a_dialog(machine, bob, as_user):
    answer = as_user(bob).get(f"/t/acme/instances/{machine.pk}/act/stop/", headers={"HX-Request": "true"})
    assert text(answer).lstrip().startswith("<form")
