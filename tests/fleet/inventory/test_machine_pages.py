"""Typing a machine, saying whose it is, holding it: forms, roles, and what they refuse."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from fleet.inventory.machines import holds_in_force, place_hold
from fleet.inventory.models import Hold, Instance
from fleet.inventory.poll import poll_account
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry
from tests.fleet.inventory.conftest import NOON

ADD = "/t/acme/instances/add/"
FILLED = {
    "name": "desk-01",
    "state": "running",
    "gpu_raw": "RTX 4090",
    "gpu_count": "2",
    "price_per_hour": "0.85",
    "currency": "USD",
    "tenancy": "dedicated_host",
    "ssh": "ubuntu@203.0.113.4:2222",
    "labels": "use=eval, floor=2",
}


@pytest.fixture
def listed_machine(lab, provider, listed) -> Instance:
    provider.machines = [listed("i-1", rate="2")]
    poll_account(account=lab, now=NOON)
    return Instance.objects.get()


class TestAdd:
    def test_what_was_typed_is_a_machine(self, acme, bob, as_user, project):
        answer = as_user(bob).post(ADD, {**FILLED, "project": project.pk, "owner": bob.pk})
        machine = Instance.objects.get()
        assert answer.headers["Location"] == f"/t/acme/instances/{machine.pk}/"
        assert (machine.name, machine.gpu_model, machine.gpu_count) == ("desk-01", "RTX 4090", 2)
        assert (machine.price_per_hour, machine.is_exclusive) == (Decimal("0.85"), True)
        assert machine.ssh == [{"host": "203.0.113.4", "port": 2222, "user": "ubuntu", "kind": "direct"}]
        assert (machine.owner, machine.project) == (bob, project)
        assert machine.labels == {"use": "eval", "floor": "2"}
        assert AuditEntry.objects.filter(action="instance.add", actor=bob).exists()

    @pytest.mark.parametrize(
        ("field", "value", "says"),
        [
            ("name", "", "id_name_error"),
            ("gpu_count", "-1", "id_gpu_count_error"),
            ("price_per_hour", "cheap", "id_price_per_hour_error"),
            ("price_per_hour", "-1", "id_price_per_hour_error"),
            ("currency", "dollars", "three capital letters"),
            ("ssh", "not an address", "Write user@host"),
            ("ssh", "host:99999", "Write user@host"),
            ("ssh", "-oProxyCommand=sh", "Write user@host"),
            ("ssh", "root@-oProxyCommand", "Write user@host"),
            ("ssh", "-l@203.0.113.4", "Write user@host"),
            ("ssh", "root@[fe80::1%;sh]", "Write user@host"),
            ("ssh", "@host", "Write user@host"),
            ("labels", "no-equals-sign", "is not key=value"),
            ("expires_at", "soon", "id_expires_at_error"),
            ("state", "terminated", "id_state_error"),
        ],
    )
    def test_bad_input_names_its_field_and_loses_nothing(self, acme, bob, as_user, field, value, says):
        answer = as_user(bob).post(ADD, {**FILLED, field: value})
        assert answer.status_code == 422
        assert says in answer.text
        assert 'value="ubuntu@203.0.113.4:2222"' in answer.text or field == "ssh"
        assert not Instance.objects.exists()

    def test_an_owner_or_project_of_another_team_is_refused(self, acme, rival, bob, charlie, as_user):
        answer = as_user(bob).post(ADD, {**FILLED, "owner": charlie.pk})
        assert answer.status_code == 422
        assert "charlie" not in as_user(bob).get(ADD).text

    def test_a_viewer_may_not(self, acme, vera, as_user):
        assert as_user(vera).get(ADD).status_code == 403
        assert as_user(vera).post(ADD, FILLED).status_code == 403


class TestEdit:
    def test_of_a_listed_machine_people_say_whose_it_is(self, listed_machine, bob, as_user, project):
        address = f"/t/acme/instances/{listed_machine.pk}/edit/"
        page = as_user(bob).get(address).text
        assert "price_per_hour" not in page
        said = {"managed": "on", "owner": bob.pk, "project": project.pk, "labels": "use=train", "price_per_hour": "0"}
        assert as_user(bob).post(address, said).status_code == 302
        listed_machine.refresh_from_db()
        assert (listed_machine.managed, listed_machine.owner, listed_machine.project) == (True, bob, project)
        assert listed_machine.price_per_hour == 2

    def test_of_a_typed_one_everything(self, acme, bob, as_user):
        as_user(bob).post(ADD, FILLED)
        machine = Instance.objects.get()
        address = f"/t/acme/instances/{machine.pk}/edit/"
        assert 'value="0.85"' in as_user(bob).get(address).text
        as_user(bob).post(address, {**FILLED, "price_per_hour": "", "state": "terminated"})
        machine.refresh_from_db()
        assert (machine.price_per_hour, machine.billing) == (None, "none")
        assert machine.gone_at is not None


class TestHolds:
    def test_place_see_and_release(self, make_instance, bob, as_user):
        machine = make_instance()
        until = timezone.localtime(timezone.now() + timedelta(hours=5)).strftime("%Y-%m-%dT%H:%M")
        as_user(bob).post(f"/t/acme/instances/{machine.pk}/hold/", {"reason": "<i>eval</i>", "until": until})
        hold = Hold.objects.get()
        assert (hold.owner, hold.kind, hold.reason) == (bob, "person", "<i>eval</i>")
        page = as_user(bob).get(f"/t/acme/instances/{machine.pk}/").text
        assert "&lt;i&gt;eval&lt;/i&gt;" in page
        assert f"/t/acme/holds/{hold.pk}/release/" in page
        as_user(bob).post(f"/t/acme/holds/{hold.pk}/release/")
        assert not holds_in_force(now=timezone.now()).exists()

    def test_a_reason_is_asked_for_and_the_past_is_refused(self, make_instance, bob, as_user):
        machine = make_instance()
        answer = as_user(bob).post(f"/t/acme/instances/{machine.pk}/hold/", {"reason": "", "until": "2020-01-01T00:00"})
        assert answer.status_code == 422
        assert "id_reason_error" in answer.text
        assert "That moment is past" in answer.text

    def test_a_viewer_sees_a_hold_and_cannot_release_it(self, make_instance, vera, bob, as_user):
        machine = make_instance()
        hold = place_hold(actor=Actor.system("test"), instance=machine, owner=bob, reason="long evaluation")
        page = as_user(vera).get(f"/t/acme/instances/{machine.pk}/").text
        assert "long evaluation" in page
        assert "release" not in page.replace("until it is released", "")
        assert as_user(vera).post(f"/t/acme/holds/{hold.pk}/release/").status_code == 403

    def test_charlie_finds_nothing(self, make_instance, bob, charlie, as_user):
        machine = make_instance()
        hold = place_hold(actor=Actor.system("test"), instance=machine, owner=bob)
        for team in ("acme", "rival"):
            for address in (f"instances/{machine.pk}/edit/", f"instances/{machine.pk}/hold/"):
                assert as_user(charlie).get(f"/t/{team}/{address}").status_code == 404
            assert as_user(charlie).post(f"/t/{team}/holds/{hold.pk}/release/").status_code == 404
        assert holds_in_force(now=timezone.now()).exists()


def test_an_unmanaged_machine_says_so_and_can_be_registered(listed_machine, bob, as_user):
    page = as_user(bob).get(f"/t/acme/instances/{listed_machine.pk}/").text
    assert "Nobody registered this machine" in page
    assert f"/t/acme/instances/{listed_machine.pk}/edit/" in page
