"""Who hears what, over the API: the same rules as on the page, for the team's channels and for one's own."""

from __future__ import annotations

import pytest

from fleet.alerts.channels.models import Channel, Route
from fleet.teams.models import AuditEntry, Project, Scope, Team

LIST = "/api/v1/routes/"
CHANNELS = "/api/v1/channels/"
NIGHTS = {"severities": ["urgent"], "quiet_from": "22:00", "quiet_until": "07:30", "time_zone": "Asia/Shanghai"}


@pytest.fixture
def script(fleet, acme, as_token):
    return as_token(acme, Scope.OPERATE)


@pytest.fixture
def own(acme, vera) -> Channel:
    return Channel.objects.create(team=acme, owner=vera, kind="email", name="mine", options={"to": "v@example.org"})


def send(client, method, address, body=None):
    return getattr(client, method)(address, body or {}, content_type="application/json")


def test_it_is_added_as_on_the_page(fleet, script, project):
    body = {"channel": fleet.channel.pk, "projects": [project.pk], "language": "zh-hans", "digest": "daily", **NIGHTS}
    answer = send(script, "post", LIST, body)
    assert answer.status_code == 201
    route = Route.objects.get(pk=answer.json()["id"])
    assert (f"{route.quiet_from:%H:%M}", f"{route.quiet_until:%H:%M}") == ("22:00", "07:30")
    assert (route.digest, route.language, list(route.projects.all())) == ("daily", "zh-hans", [project])
    assert {**answer.json(), **body} == answer.json()
    entry = AuditEntry.objects.get(action="channel.route")
    assert (entry.via, entry.new["quiet_hours"], entry.new["project"]) == ("api", "22:00–07:30", [project.name])


def test_a_change_keeps_what_is_not_sent(fleet, script, project):
    told = send(script, "patch", f"{LIST}{fleet.route.pk}/", NIGHTS).json()
    assert (told["quiet_from"], told["projects"], told["severities"]) == ("22:00", [project.pk], ["urgent"])
    told = send(script, "patch", f"{LIST}{fleet.route.pk}/", {"quiet_from": None, "quiet_until": None}).json()
    assert (told["quiet_from"], told["time_zone"]) == (None, "Asia/Shanghai")


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"severities": ["dire"]}, "severities.0"),
        ({"causes": ["weather"]}, "causes"),
        ({"projects": [10**12]}, "projects"),
        ({"quiet_until": None}, "quiet_until"),
        ({"quiet_from": "at night"}, "quiet_from"),
        ({"time_zone": "Mars/Olympus"}, "time_zone"),
        ({"language": "tlh"}, "language"),
        ({"digest": "yearly"}, "digest"),
        ({"channel": 10**12}, "channel"),
        ({"sevrities": ["urgent"]}, "sevrities"),
    ],
)
def test_what_cannot_be_is_refused_by_name(fleet, script, changed, field):
    answer = send(script, "post", LIST, {"channel": fleet.channel.pk, **NIGHTS, **changed})
    assert answer.status_code in {400, 404}
    assert answer.json()["field"] == field
    assert Route.objects.count() == 1


def test_a_project_of_another_team_is_refused(fleet, script, rival):
    theirs = Project.objects.create(team=rival, name="Speech", slug="speech")
    answer = send(script, "post", LIST, {"channel": fleet.channel.pk, "projects": [theirs.pk]})
    assert (answer.status_code, answer.json()["field"]) == (404, "projects")


def test_a_channel_that_tells_at_once_has_no_digest(fleet, script, acme):
    pager = Channel.objects.create(team=acme, kind="pagerduty", name="pager")
    answer = send(script, "post", LIST, {"channel": pager.pk, "digest": "daily"})
    assert (answer.status_code, answer.json()["field"]) == (400, "digest")


def test_it_is_removed_once(fleet, script):
    assert send(script, "delete", f"{LIST}{fleet.route.pk}/").status_code == 204
    assert send(script, "delete", f"{LIST}{fleet.route.pk}/").status_code == 404


def test_they_are_filtered_by_channel(fleet, script, acme):
    other = Channel.objects.create(team=acme, kind="webhook", name="other")
    theirs = Route.objects.create(channel=other)
    rows = script.get(LIST, {"channel": other.pk}).json()["results"]
    assert [row["id"] for row in rows] == [theirs.pk]


def test_a_viewer_writes_their_own_channel_and_its_routes_and_nothing_else(fleet, vera, as_user):
    client = as_user(vera)
    body = {"kind": "email", "name": "mine", "typed": {"to": "v@example.org"}}
    assert send(client, "post", CHANNELS, body).status_code == 403
    told = send(client, "post", CHANNELS, {**body, "own": True}).json()
    assert told["owner"] == "vera"
    route = send(client, "post", LIST, {"channel": told["id"], **NIGHTS}).json()
    assert send(client, "patch", f"{LIST}{route['id']}/", {"digest": "hourly"}).json()["digest"] == "hourly"
    assert send(client, "post", LIST, {"channel": fleet.channel.pk}).status_code == 403
    assert send(client, "patch", f"{LIST}{fleet.route.pk}/", {"digest": "hourly"}).status_code == 403
    assert send(client, "delete", f"{LIST}{route['id']}/").status_code == 204
    assert send(client, "delete", f"{CHANNELS}{told['id']}/").status_code == 204


def test_nobody_else_sees_or_changes_what_is_ones_own(fleet, own, alice, as_user, script):
    route = Route.objects.create(channel=own)
    for client in (as_user(alice), script):
        assert client.get(f"{LIST}{route.pk}/").status_code == 404
        assert str(route.pk) not in [str(row["id"]) for row in client.get(LIST).json()["results"]]
        assert send(client, "delete", f"{LIST}{route.pk}/").status_code == 404
        assert send(client, "post", LIST, {"channel": own.pk}).status_code == 404


def test_a_token_has_no_channel_of_its_own(script):
    body = {"kind": "email", "name": "mine", "typed": {"to": "v@example.org"}, "own": True}
    answer = send(script, "post", CHANNELS, body)
    assert (answer.status_code, answer.json()["field"]) == (400, "own")


def test_whoever_left_the_team_writes_nothing(fleet, own, vera, acme, as_user):
    Route.objects.create(channel=own)
    client = as_user(vera)
    # Rows that a broken database might have left behind: leaving removes them in its own transaction.
    acme.memberships.filter(user=vera)._raw_delete("default")
    assert send(client, "post", LIST, {"channel": own.pk}).status_code == 403


def test_a_guest_of_the_sandbox_has_no_channel_there(vera, as_user):
    Team.objects.create(name="Sandbox", slug="sandbox", is_sandbox=True)
    body = {"kind": "email", "name": "mine", "typed": {"to": "v@example.org"}, "own": True}
    assert send(as_user(vera), "post", f"{CHANNELS}?team=sandbox", body).status_code == 403


def test_a_reader_and_another_team_do_nothing(fleet, acme, rival, as_token):
    at = f"{LIST}{fleet.route.pk}/"
    assert send(as_token(acme, Scope.READ), "delete", at).status_code == 403
    assert send(as_token(rival, Scope.ADMIN), "delete", at).status_code == 404
    assert Route.objects.count() == 1
