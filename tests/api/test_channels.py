"""Channels and deliveries over the API: who may, what is kept, what is refused, and that a secret never comes out."""

from __future__ import annotations

import pytest

from fleet.alerts.channels.credentials import config_of
from fleet.alerts.channels.models import Channel, Delivery
from fleet.teams.models import AuditEntry, Scope

LIST = "/api/v1/channels/"
LOG = "/api/v1/deliveries/"
SECRET = "whsec_0123456789abcdef"
HOOK = {"kind": "webhook", "name": "own", "typed": {"url": "https://hooks.example/x", "secret": SECRET}}


@pytest.fixture
def script(fleet, acme, as_token):
    return as_token(acme, Scope.OPERATE)


def send(client, method, address, body=None):
    return getattr(client, method)(address, body or {}, content_type="application/json")


def test_it_is_added_as_on_the_page_and_its_secret_stays_inside(script):
    answer = send(script, "post", LIST, HOOK)
    assert answer.status_code == 201
    told = answer.json()
    channel = Channel.objects.get(pk=told["id"])
    assert config_of(channel)["secret"] == SECRET
    assert (told["has_secret"], told["enabled"], channel.routes.count()) == (True, True, 1)
    seen = answer.text + script.get(f"{LIST}{channel.pk}/").text + str(AuditEntry.objects.values_list("new"))
    assert SECRET not in seen
    assert "hooks.example" not in seen


def test_a_change_keeps_what_is_not_sent(script):
    pk = send(script, "post", LIST, HOOK).json()["id"]
    told = send(script, "patch", f"{LIST}{pk}/", {"enabled": False}).json()
    assert (told["name"], told["enabled"]) == ("own", False)
    assert config_of(Channel.objects.get(pk=pk))["secret"] == SECRET


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"kind": "pigeon"}, "kind"),
        ({"name": ""}, "name"),
        ({"name": "hook"}, "name"),
        ({"typed": {}}, "url"),
        ({"typed": {"url": "http://169.254.169.254/", "secret": SECRET}}, "url"),
        ({"typed": {"url": "https://hooks.example/x", "secret": "short"}}, "secret"),
        ({"token": "x"}, "token"),
    ],
)
def test_what_cannot_be_is_refused_by_name(script, changed, field):
    answer = send(script, "post", LIST, {**HOOK, **changed})
    assert (answer.status_code, answer.json()["field"]) == (400, field)
    assert Channel.objects.count() == 1


def test_a_test_is_a_line_of_the_log(script):
    pk = send(script, "post", LIST, HOOK).json()["id"]
    answer = send(script, "post", f"{LIST}{pk}/test/")
    assert answer.status_code == 202
    assert script.get(f"{LOG}{answer.json()['delivery']}/").json()["channel"] == pk


def test_the_log_is_filtered(fleet, script):
    other = Delivery.objects.create(channel=fleet.channel, state="dead", error="gone")
    rows = script.get(LOG, {"state": "dead"}).json()["results"]
    assert [(row["id"], row["error"]) for row in rows] == [(other.pk, "gone")]
    assert "webhook" in rows[0]["failure"]
    assert [row["id"] for row in script.get(LOG, {"alert": fleet.alert.pk}).json()["results"]] == [fleet.delivery.pk]


def test_a_persons_own_channel_is_seen_by_nobody_else(fleet, bob, alice, acme, as_user, script):
    own = Channel.objects.create(team=acme, owner=bob, kind="email", name="mine", options={"to": "bob@example.org"})
    line = Delivery.objects.create(channel=own)
    for client in (as_user(alice), script):
        assert client.get(f"{LIST}{own.pk}/").status_code == client.get(f"{LOG}{line.pk}/").status_code == 404
        assert "bob@example.org" not in client.get(LIST).text
        assert send(client, "delete", f"{LIST}{own.pk}/").status_code == 404
    assert as_user(bob).get(f"{LIST}{own.pk}/").json()["owner"] == "bob"


def test_it_is_removed_once(fleet, script):
    assert send(script, "delete", f"{LIST}{fleet.channel.pk}/").status_code == 204
    assert send(script, "delete", f"{LIST}{fleet.channel.pk}/").status_code == 404


def test_a_reader_and_another_team_do_nothing(fleet, acme, rival, as_token):
    at = f"{LIST}{fleet.channel.pk}/"
    assert send(as_token(acme, Scope.READ), "delete", at).status_code == 403
    assert send(as_token(rival, Scope.ADMIN), "post", f"{at}test/").status_code == 404
    assert Channel.objects.filter(pk=fleet.channel.pk).exists()


def test_names_are_one_line_and_unknown_fields_are_named(script):
    answer = send(script, "post", LIST, {**HOOK, "name": "o\nps\u202e"})
    assert (answer.status_code, answer.json()["name"]) == (201, "o ps")
    answer = send(
        script,
        "post",
        LIST,
        {**HOOK, "name": "b", "typed": {"url": "https://hooks.example/x", "secret": SECRET, "nope": "1"}},
    )
    assert answer.status_code == 400
    assert "Unknown: nope. This kind of channel has url, secret." in answer.text
