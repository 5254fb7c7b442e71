"""Idle policies and how machines are used, over the API: what is kept, who writes, and what a mistake is told."""

from __future__ import annotations

import pytest

from fleet.idle.policies.models import IdlePolicy, MachineUse
from fleet.teams.models import AuditEntry, Scope

POLICIES, USES = "/api/v1/idle-policies/", "/api/v1/machine-uses/"
STOP = {"name": "Notebooks", "action": "stop", "confirmed": True}


@pytest.fixture
def send(acme, as_token):
    client = as_token(acme, Scope.ADMIN)
    return lambda body, address=POLICIES, method="post": getattr(client, method)(address, body, content_type="application/json")  # fmt: skip


def test_one_is_added_read_changed_and_removed(send, project, make_instance, as_token, acme):
    machine, left = make_instance(project=project), make_instance(name="left", project=project)
    added = send({
        **STOP, "project": "vision", "excluded": [left.pk], "limits": {"cpu_percent": 20, "coverage": 0.9}, "warn_minutes": [5, 10],
        "office_days": [4, 0], "office_from": "22:00", "office_until": "06:00", "holidays": "de-by",
    })  # fmt: skip
    assert added.status_code == 201
    row = added.json()
    assert (row["limits"], row["warn_minutes"], row["office_days"], row["holidays"]) == ({"cpu_percent": 20.0}, [10, 5], [0, 4], "DE-BY")  # fmt: skip
    assert (row["stops"], row["position"], row["excluded"]) == (True, 10, [left.pk])
    assert row["says"].startswith("Machines of Vision, except 1, idle for 1 h are stopped 30 min after a warning, outside 22:00–06:00")  # fmt: skip
    address = f"{POLICIES}{row['id']}/"
    assert as_token(acme).get(address).json()["machines"] == [machine.pk]
    changed = send({"action": "alert"}, address, "patch")
    assert (changed.status_code, changed.json()["stops"], changed.json()["project"]) == (200, False, "vision")
    assert send({}, address, "delete").status_code == 204
    assert as_token(acme).get(address).status_code == 404
    actions = AuditEntry.objects.filter(target_type="IdlePolicy").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["idle_policy.add", "idle_policy.change", "idle_policy.remove"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"name": "x", "action": "stop"}, "confirmed"),
        ({"name": "x", "action": "burn"}, "action"),
        ({"name": "x", "project": "nowhere"}, "project"),
        ({"name": "x", "account": 99}, "account"),
        ({"name": "x", "excluded": [99]}, "excluded"),
        ({"name": "x", "window_minutes": 4}, "window_minutes"),
        ({"name": "x", "limits": {"cpu": 3}}, "limits"),
        ({"name": "x", "limits": {"cpu_percent": 0}}, "limits"),
        ({"name": "x", "wrong_stop_gpu_hours": "nan"}, "wrong_stop_gpu_hours"),
        ({"name": "x", "office_days": [1]}, "office_from"),
        ({"name": "x", "holidays": "XX"}, "holidays"),
        ({"name": "x", "delete_consent": True}, "delete_consent"),
        ({"name": "x", "colour": "red"}, "colour"),
    ],
)
def test_mistakes_name_their_field(send, body, field):
    answer = send(body)
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert not IdlePolicy.objects.exists()


def test_a_person_agrees_that_machines_are_deleted_and_a_script_cannot(send, as_user, alice):
    address = f"{POLICIES}{send({'name': 'Old', 'delete_after_days': 7}).json()['id']}/"
    agree = {"delete_consent": True}
    assert send(agree, address, "patch").json()["field"] == "delete_consent"
    given = as_user(alice).patch(address, agree, content_type="application/json").json()
    assert (given["delete_consent_by"], given["delete_consent_at"] is not None) == ("alice", True)
    assert send({"delete_after_days": 3}, address, "patch").json()["delete_consent_at"] is None


def test_they_change_places(send, acme):
    first, second = (send({"name": name}).json()["id"] for name in ("One", "Two"))
    assert send({"direction": "up"}, f"{POLICIES}{second}/move/").json()["position"] == 10
    assert [row["id"] for row in send({}, f"{POLICIES}?ordering=position", "get").json()["results"]] == [second, first]
    assert send({"direction": "up"}, f"{POLICIES}{second}/move/").status_code == 409


def test_admins_write(acme, as_user, bob, charlie, as_token):
    one = IdlePolicy.objects.create(team=acme, name="All")
    for client in (as_user(bob), as_token(acme, Scope.OPERATE)):
        assert client.post(POLICIES, {"name": "x"}, content_type="application/json").status_code == 403
        assert client.delete(f"{POLICIES}{one.pk}/").status_code == 403
    assert as_user(charlie).delete(f"{POLICIES}{one.pk}/").status_code == 404
    assert as_user(charlie).get(POLICIES).json()["results"] == []


class TestUse:
    def test_it_is_said_extended_and_said_no_more(self, send, make_instance, as_token, acme):
        machine = make_instance()
        said = send({"instance": machine.pk, "mode": "batch"}, USES)
        assert (said.status_code, said.json()["mode"], said.json()["lease_until"]) == (201, "batch", None)
        address = f"{USES}{machine.pk}/"
        until = MachineUse.objects.get().changed_at.replace(microsecond=0)
        later = until.replace(year=until.year + 1, month=1, day=1).isoformat()
        longer = send({"until": later}, f"{address}extend/")
        assert (longer.status_code, longer.json()["mode"]) == (200, "batch")
        assert send({"until": later}, f"{address}extend/").json()["field"] == "lease_until"
        assert send({"mode": ""}, address, "patch").json()["lease_until"] == longer.json()["lease_until"]
        assert send({}, address, "delete").status_code == 204
        assert as_token(acme).get(USES).json()["results"] == []

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"mode": "lazy"}, "mode"),
            ({"lease_until": "2001-01-01T00:00:00Z"}, "lease_until"),
            ({"until": "x"}, "until"),
        ],
    )
    def test_mistakes_name_their_field(self, send, make_instance, body, field):
        answer = send({"instance": make_instance().pk, **body}, USES)
        assert (answer.status_code, answer.json()["field"]) == (400, field)

    def test_operators_write_of_their_own_team(self, make_instance, as_user, bob, vera, charlie):
        asked = {"instance": make_instance().pk, "mode": "pinned"}
        for user, code in ((vera, 403), (charlie, 404), (bob, 201)):
            assert as_user(user).post(USES, asked, content_type="application/json").status_code == code
