"""The write side of exporters: who may, what is kept, what is refused, and that a token never comes out."""

from __future__ import annotations

import pytest
from rest_framework.throttling import SimpleRateThrottle

from fleet.inventory.credentials import open_sealed
from fleet.teams.models import AuditEntry, Membership, Role, Scope
from fleet.telemetry.models import ScrapeTarget
from fleet.telemetry.tasks import scrape_shard

LIST = "/api/v1/scrape-targets/"
URL = "http://203.0.114.8:9100/metrics"


@pytest.fixture
def script(fleet, acme, as_token):
    return as_token(acme, Scope.OPERATE)


@pytest.fixture(autouse=True)
def sent(monkeypatch) -> list[str]:
    claims: list[str] = []
    monkeypatch.setattr(scrape_shard, "delay", claims.append)
    return claims


@pytest.fixture
def row(fleet) -> str:
    return f"{LIST}{fleet.exporter.pk}/"


def send(client, method: str, address: str, body: object = None):
    return getattr(client, method)(address, body, content_type="application/json")


def test_it_is_added_as_on_the_page(fleet, script):
    answer = send(script, "post", LIST, {"instance": fleet.instance.pk, "url": URL, "kind": "node", "token": "s3cret"})
    assert answer.status_code == 201
    told = answer.json()
    target = ScrapeTarget.objects.get(pk=told["id"])
    assert (target.instance, target.url, target.kind, target.interval_seconds) == (fleet.instance, URL, "node", 30)
    assert open_sealed(target.token) == {"token": "s3cret"}
    assert told["has_token"] is True
    assert "s3cret" not in answer.text + script.get(f"{LIST}{target.pk}/").text
    entry = AuditEntry.objects.get(action="scrape_target.add")
    assert (entry.via, entry.actor, entry.new["url"]) == ("api", None, URL)
    assert entry.actor_label.startswith("token script")
    assert "s3cret" not in str(entry.new)


def test_a_change_keeps_what_is_not_sent(script, row, fleet):
    ScrapeTarget.objects.update(kind="dcgm", enabled=False)
    answer = send(script, "patch", row, {"interval_seconds": 60})
    assert answer.status_code == 200
    assert {name: answer.json()[name] for name in ("interval_seconds", "kind", "enabled", "url")} == {
        "interval_seconds": 60,
        "kind": "dcgm",
        "enabled": False,
        "url": fleet.exporter.url,
    }
    entry = AuditEntry.objects.get(action="scrape_target.update")
    assert (entry.old, entry.new) == ({"interval_seconds": 30}, {"interval_seconds": 60})


def test_an_empty_token_takes_it_away_and_an_absent_one_keeps_it(script, row):
    assert send(script, "patch", row, {"token": "s3cret"}).json()["has_token"] is True
    assert send(script, "patch", row, {"enabled": True}).json()["has_token"] is True
    assert send(script, "patch", row, {"token": ""}).json()["has_token"] is False


def test_a_kept_token_does_not_follow_to_another_address(script, row, fleet):
    send(script, "patch", row, {"token": "s3cret"})
    answer = send(script, "patch", row, {"url": URL})
    assert (answer.status_code, answer.json()["field"]) == (400, "token")
    assert ScrapeTarget.objects.get(pk=fleet.exporter.pk).url == fleet.exporter.url


def test_it_is_removed_once(script, row):
    answer = send(script, "delete", row)
    assert (answer.status_code, answer.content) == (204, b"")
    assert not ScrapeTarget.objects.exists()
    assert AuditEntry.objects.filter(action="scrape_target.remove").count() == 1
    assert send(script, "delete", row).status_code == 404


def test_it_is_read_out_of_turn_once(script, row, sent, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        answers = [send(script, "post", f"{row}read/") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert [answer.json()["started"] for answer in answers] == [True, False]
    assert len(sent) == 1


@pytest.mark.parametrize(
    ("changed", "field", "says"),
    [
        ({"url": "http://127.0.0.1:9400/metrics"}, "url", "ALLOWED_NETWORKS"),
        ({"url": "http://[::ffff:169.254.169.254]/"}, "url", "metadata"),
        ({"url": "ftp://203.0.114.7/"}, "url", "http://"),
        ({"url": "http://a:b@203.0.114.7/"}, "url", "token"),
        ({"url": ""}, "url", "blank"),
        ({"url": None}, "url", "null"),
        ({"url": ["a"]}, "url", "string"),
        ({"url": "http://203.0.114.7/\0"}, "url", "Null"),
        ({"url": "x" * 501}, "url", "500"),
        ({"kind": "nagios"}, "kind", "nagios"),
        ({"interval_seconds": 7}, "interval_seconds", "7"),
        ({"interval_seconds": "often"}, "interval_seconds", "often"),
        ({"token": "two words"}, "token", "without spaces"),
        ({"instance": 0}, "instance", "1"),
        ({"instance": 2**70}, "instance", "9223372036854775807"),
        ({"instance": "x"}, "instance", "integer"),
        ({"tokn": "s3cret"}, "tokn", "Did you mean `token`"),
        ({"team": "rival"}, "team", "no such field"),
    ],
)
def test_bad_input_names_the_field_and_changes_nothing(fleet, script, changed, field, says):
    answer = send(script, "post", LIST, {"instance": fleet.instance.pk, "url": URL, **changed})
    assert (answer.status_code, answer.json()["error"], answer.json()["field"]) == (400, "invalid", field)
    assert says in answer.json()["detail"]
    assert ScrapeTarget.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "kind", "status", "error"),
    [
        ("{", "application/json", 400, "parse_error"),
        ("[]", "application/json", 400, "invalid"),
        ("null", "application/json", 400, "invalid"),
        ("a=1", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
    ],
)
def test_what_is_no_json_object_is_refused(script, body, kind, status, error):
    answer = script.generic("POST", LIST, body, kind)
    assert (answer.status_code, answer.json()["error"]) == (status, error)


def test_the_same_address_twice_is_told_so(fleet, script):
    answer = send(script, "post", LIST, {"instance": fleet.bare.pk, "url": fleet.exporter.url})
    assert (answer.status_code, answer.json()["field"]) == (400, "url")
    assert "there already" in answer.json()["detail"]


def test_filters_are_of_the_list_alone(fleet, script):
    assert send(script, "post", f"{LIST}?instance={fleet.instance.pk}", {}).json()["field"] == "instance"


def test_failing_ones_are_found(fleet, script):
    assert script.get(LIST, {"failing": "true"}).json()["results"] == []
    ScrapeTarget.objects.update(error="status", error_detail="500")
    (failing,) = script.get(LIST, {"failing": "true"}).json()["results"]
    assert failing["failure"] == "It answers with HTTP 500."


class TestWhoMay:
    def test_another_teams_machine_does_not_exist(self, fleet, rival, charlie, as_user, as_token):
        for client in (as_token(rival, Scope.ADMIN), as_user(charlie)):
            answer = send(client, "post", LIST, {"instance": fleet.instance.pk, "url": URL})
            assert (answer.status_code, answer.json()["field"]) == (404, "instance")
            for method, address in (("patch", ""), ("delete", ""), ("post", "read/")):
                assert send(client, method, f"{LIST}{fleet.exporter.pk}/{address}", {}).status_code == 404
        assert ScrapeTarget.objects.count() == 1

    def test_an_operator_elsewhere_only_reads_here(self, fleet, rival, vera, as_user, row):
        Membership.objects.create(team=rival, user=vera, role=Role.OPERATOR)
        client = as_user(vera)
        assert send(client, "post", LIST, {"instance": fleet.instance.pk, "url": URL}).status_code == 403
        for method, address in (("patch", row), ("delete", row), ("post", f"{row}read/")):
            assert send(client, method, address, {}).status_code == 403
        assert ScrapeTarget.objects.get().url == fleet.exporter.url

    def test_a_person_writes_under_their_name(self, bob, as_user, row):
        assert send(as_user(bob), "patch", row, {"enabled": False}).status_code == 200
        entry = AuditEntry.objects.get(action="scrape_target.update")
        assert (entry.via, entry.actor, entry.actor_label) == ("api", bob, "bob")


def test_writes_have_a_rate_of_their_own(script, row, monkeypatch):
    rates = {**SimpleRateThrottle.THROTTLE_RATES, "write": "2/minute"}
    monkeypatch.setattr(SimpleRateThrottle, "THROTTLE_RATES", rates)
    assert [send(script, "patch", row, {"enabled": True}).status_code for _ in range(3)] == [200, 200, 429]
    assert script.get(row).status_code == 200
