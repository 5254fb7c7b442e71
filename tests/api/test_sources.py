"""The write side of the team's Prometheus servers, of their labels, and of its SSH key."""

from __future__ import annotations

import asyncssh
import pytest

from fleet.inventory.credentials import open_sealed
from fleet.inventory.models import SshKey
from fleet.teams.models import AuditEntry, Scope
from fleet.telemetry.sources.models import PrometheusSource

LIST = "/api/v1/prometheus-sources/"
LABELS = "/api/v1/source-labels/"
KEYS = "/api/v1/ssh-keys/"
URL = "https://other.example"


@pytest.fixture
def script(fleet, acme, as_token):
    return as_token(acme, Scope.OPERATE)


@pytest.fixture
def row(fleet) -> str:
    return f"{LIST}{fleet.source.pk}/"


def send(client, method: str, address: str, body: object = None):
    return getattr(client, method)(address, body, content_type="application/json")


class TestSources:
    def test_one_is_added_as_on_the_page(self, script, acme):
        asked = {"name": "B", "url": f"{URL}/api/v1/query", "token": "s3cret", "tenant": "b", "history_hours": 6}
        answer = send(script, "post", LIST, asked)
        assert answer.status_code == 201
        told = answer.json()
        source = PrometheusSource.objects.get(pk=told["id"])
        assert (source.team, source.url, source.tenant, source.interval_seconds) == (acme, URL, "b", 30)
        assert open_sealed(source.token) == {"token": "s3cret"}
        assert (source.created_at - source.read_until).total_seconds() == pytest.approx(6 * 3600, abs=60)
        assert told["has_token"] is True
        assert "s3cret" not in answer.text + script.get(f"{LIST}{source.pk}/").text
        assert AuditEntry.objects.get(action="source.add").via == "api"

    def test_a_change_keeps_what_is_not_sent(self, script, row):
        PrometheusSource.objects.update(selector='job="dcgm"', adds_machines=True, enabled=False)
        answer = send(script, "patch", row, {"interval_seconds": 60}).json()
        assert (answer["interval_seconds"], answer["selector"]) == (60, 'job="dcgm"')
        assert (answer["adds_machines"], answer["enabled"], answer["has_token"]) == (True, False, True)
        entry = AuditEntry.objects.get(action="source.update")
        assert (entry.old, entry.new) == ({"interval_seconds": 30}, {"interval_seconds": 60})

    def test_a_kept_token_does_not_follow_to_another_address(self, script, row):
        answer = send(script, "patch", row, {"url": URL})
        assert (answer.status_code, answer.json()["field"]) == (400, "token")
        assert send(script, "patch", row, {"url": URL, "token": ""}).json()["has_token"] is False

    def test_one_is_removed(self, script, row):
        assert send(script, "delete", row).status_code == 204
        assert not PrometheusSource.objects.exists()
        assert send(script, "delete", row).status_code == 404

    @pytest.mark.parametrize(
        ("changed", "field"),
        [
            ({"url": "http://127.0.0.1:9090"}, "url"),
            ({"url": "http://169.254.169.254/"}, "url"),
            ({"name": "Own"}, "name"),
            ({"tenant": "\u65e5\u672c"}, "tenant"),
            ({"selector": "job=dcgm"}, "selector"),
            ({"gpu_label": "a b"}, "gpu_label"),
            ({"interval_seconds": 1}, "interval_seconds"),
            ({"history_hours": 7}, "history_hours"),
            ({"token": "two words"}, "token"),
            ({"nam": "B"}, "nam"),
        ],
    )
    def test_bad_input_names_the_field_and_changes_nothing(self, script, changed, field):
        answer = send(script, "post", LIST, {"name": "B", "url": URL, **changed})
        assert (answer.status_code, answer.json()["error"], answer.json()["field"]) == (400, "invalid", field)
        assert PrometheusSource.objects.count() == 1

    def test_failing_ones_are_found(self, script):
        assert script.get(LIST, {"failing": "true"}).json()["results"] == []
        PrometheusSource.objects.update(error="status", error_detail="500")
        (failing,) = script.get(LIST, {"failing": "true"}).json()["results"]
        assert failing["failure"] == "It answers with HTTP 500."


class TestLabels:
    def test_a_machine_is_chosen_and_none_is(self, script, fleet):
        row = f"{LABELS}{fleet.label.pk}/"
        assert send(script, "patch", row, {"instance": fleet.bare.pk}).json()["instance"] == fleet.bare.pk
        answer = send(script, "patch", row, {"instance": None}).json()
        assert (answer["instance"], answer["chosen"]) == (None, True)
        assert [one["id"] for one in script.get(LABELS, {"matched": "false"}).json()["results"]] == [fleet.label.pk]
        assert AuditEntry.objects.filter(action="source.choose").count() == 2

    def test_another_teams_machine_is_none(self, script, fleet, rival, account, make_instance):
        foreign = make_instance(name="foreign", team=rival)
        answer = send(script, "patch", f"{LABELS}{fleet.label.pk}/", {"instance": foreign.pk})
        assert (answer.status_code, answer.json()["field"]) == (400, "instance")
        fleet.label.refresh_from_db()
        assert fleet.label.instance == fleet.instance


class TestKeys:
    def test_a_new_one_is_made(self, script, acme):
        before = SshKey.objects.get(team=acme).public_key
        answer = send(script, "post", KEYS, {"private_key": ""})
        assert answer.status_code == 201
        assert answer.json()["public_key"].startswith("ssh-ed25519 ")
        assert answer.json()["public_key"] == SshKey.objects.get(team=acme).public_key != before
        assert "PRIVATE" not in answer.text + script.get(KEYS).text
        assert AuditEntry.objects.get(action="ssh_key.set").via == "api"

    def test_an_own_one_is_taken(self, script, acme):
        own = asyncssh.generate_private_key("ssh-ed25519")
        answer = send(script, "post", KEYS, {"private_key": own.export_private_key().decode()})
        assert answer.json()["fingerprint"] == own.get_fingerprint()

    def test_what_is_none_is_refused(self, script):
        for body, field in (({"private_key": "hello"}, "private_key"), ({}, "private_key"), ({"key": ""}, "key")):
            answer = send(script, "post", KEYS, body)
            assert (answer.status_code, answer.json()["field"]) == (400, field)
        assert not AuditEntry.objects.filter(action="ssh_key.set").exists()


def test_others_see_and_change_nothing(fleet, rival, charlie, vera, as_user, as_token, acme):
    rows = [f"{LIST}{fleet.source.pk}/", f"{LABELS}{fleet.label.pk}/"]
    for client in (as_token(rival, Scope.ADMIN), as_user(charlie)):
        for row in rows:
            assert send(client, "patch", row, {}).status_code == 404
    for client in (as_user(vera), as_token(acme, Scope.READ)):
        for row in rows:
            assert send(client, "patch", row, {}).status_code == 403
        for address, body in ((LIST, {"name": "B", "url": URL}), (KEYS, {"private_key": ""})):
            assert send(client, "post", address, body).status_code in (400, 403)
    assert PrometheusSource.objects.count() == SshKey.objects.count() == 1
