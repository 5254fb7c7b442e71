"""Settings, Channels: adding, testing, mending; who sees and changes which; secrets are not shown."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from fleet.alerts.channels.credentials import config_of
from fleet.alerts.channels.models import CalendarFeed, Channel, Delivery, Route
from fleet.alerts.door import raise_event
from tests.fleet.alerts.channels.conftest import work
from tests.fleet.alerts.conftest import NOON

LIST = "/t/acme/settings/channels/"
HOOK = "https://hooks.slack.example/services/T/B/secret"


def add(browser: Client, kind: str = "slack", **typed: str):
    return browser.post(f"{LIST}new/{kind}/", {"name": "Ops", "url": HOOK, **typed})


def test_add_and_see_it_with_its_secret_sealed(alice, as_user):
    browser = as_user(alice)
    assert add(browser).status_code == 302
    channel = Channel.objects.get()
    assert config_of(channel) == {"url": HOOK}
    assert b"secret" not in bytes(channel.secret)
    for page in (LIST, f"{LIST}{channel.pk}/", "/t/acme/settings/audit/"):
        shown = browser.get(page).content.decode()
        assert "Ops" in shown
        assert HOOK not in shown


@pytest.mark.parametrize(
    ("kind", "typed", "field", "says"),
    [
        ("slack", {"url": "http://127.0.0.1:9/"}, "url", "private or special network"),
        ("slack", {"url": "file:///etc/passwd"}, "url", "http"),
        ("slack", {"url": ""}, "url", "required"),
        ("email", {"to": "nobody"}, "to", "is no e-mail address"),
        ("email", {"to": ",".join(f"a{n}@example.org" for n in range(11))}, "to", "one to 10"),
        ("webhook", {"secret": "short"}, "secret", "At least 16"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(alice, as_user, kind, typed, field, says):
    answer = add(as_user(alice), kind, **typed)
    assert answer.status_code == 422
    assert says in " ".join(answer.context["form"].errors[field])
    assert not Channel.objects.exists()


def test_an_empty_secret_stays_and_never_goes_to_another_address(alice, as_user):
    browser = as_user(alice)
    add(browser, "telegram", token="1:a", chat_id="-1", api_url="https://api.telegram.org")
    channel = Channel.objects.get()
    page = f"{LIST}{channel.pk}/"
    kept = {"name": "Ops", "chat_id": "-2", "api_url": "https://api.telegram.org", "enabled": "on", "token": ""}
    assert browser.post(page, kept).status_code == 302
    channel.refresh_from_db()
    assert (config_of(channel)["token"], config_of(channel)["chat_id"]) == ("1:a", "-2")
    moved = browser.post(page, {**kept, "api_url": "https://evil.example"})
    assert moved.status_code == 422
    assert "type its secret again" in str(moved.context["form"].errors["token"])


def test_the_test_button_sends_and_the_log_says_so(alice, as_user, make_channel, recorder):
    channel = make_channel()
    browser = as_user(alice)
    # The page of a kind that tests made up is drawn like any other.
    assert browser.post(f"{LIST}{channel.pk}/test/").status_code == 302
    assert browser.post(f"{LIST}{channel.pk}/test/").status_code == 302
    assert Delivery.objects.count() == 1, "one is on its way already"
    work()
    page = browser.get(f"{LIST}{channel.pk}/").content.decode()
    assert recorder.titles == ["Rackrent reaches this channel"]
    assert 'data-b="o"' in page
    assert "sent" in page


def test_a_broken_one_says_what_to_do_here_and_beside_the_inbox(alice, as_user, make_channel, recorder):
    channel = make_channel()
    Channel.objects.filter(pk=channel.pk).update(broken="gone")
    for page in (LIST, f"{LIST}{channel.pk}/", "/t/acme/alerts/"):
        assert "Make a new one and paste it here" in as_user(alice).get(page).content.decode()


def test_names_from_machines_are_text_in_the_log(acme, alice, as_user, make_instance, make_channel, recorder):
    channel = make_channel()
    machine = make_instance(name="<script>alert(1)</script>")
    raise_event(team=acme, cause="gpu.lost", subject="instance:1", severity="urgent", instance=machine, now=NOON)
    page = as_user(alice).get(f"{LIST}{channel.pk}/").content.decode()
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page


class TestWhoseItIs:
    def test_a_viewer_adds_their_own_and_nobody_else_sees_it(self, alice, vera, as_user, acme):
        assert add(as_user(vera)).status_code == 302
        channel = Channel.objects.get()
        assert channel.owner == vera
        assert as_user(alice).get(f"{LIST}{channel.pk}/").status_code == 404
        assert "Ops" not in as_user(alice).get(LIST).content.decode()

    def test_a_viewer_does_not_touch_the_teams(self, alice, vera, as_user):
        add(as_user(alice))
        channel = Channel.objects.get()
        for path in ("", "test/", "remove/", "routes/new/"):
            assert as_user(vera).post(f"{LIST}{channel.pk}/{path}").status_code == 403

    def test_guests_of_the_sandbox_have_nothing_there(self, acme, charlie, as_user):
        acme.is_sandbox = True
        acme.save()
        browser = as_user(charlie)
        assert browser.get(LIST).status_code == 200
        assert add(browser).status_code == 403
        assert browser.post(f"{LIST}calendar/").status_code == 403
        assert not Channel.objects.exists()


class TestWhoHearsWhat:
    def test_add_change_remove(self, alice, as_user, project, make_channel, recorder):
        channel, browser = make_channel(), as_user(alice)
        typed = {"severities": ["urgent"], "causes": ["gpu.lost"], "projects": [project.pk], "digest": "daily", "quiet_from": "22:00", "quiet_until": "07:00", "time_zone": "Asia/Shanghai"}  # fmt: skip
        assert browser.post(f"{LIST}{channel.pk}/routes/new/", typed).status_code == 302
        route = Route.objects.latest("pk")
        assert (route.severities, route.causes, list(route.projects.all())) == (["urgent"], ["gpu.lost"], [project])
        path = f"/t/acme/settings/routes/{route.pk}/"
        assert "Asia/Shanghai" in browser.get(path).content.decode()
        assert browser.post(path, {"digest": "none"}).status_code == 302
        route.refresh_from_db()
        assert (route.severities, route.quiet_from, route.digest) == ([], None, "none")
        assert browser.post(f"{path}remove/").status_code == 302
        assert not Route.objects.filter(pk=route.pk).exists()

    def test_half_of_quiet_hours(self, alice, as_user, make_channel, recorder):
        channel = make_channel()
        answer = as_user(alice).post(f"{LIST}{channel.pk}/routes/new/", {"digest": "none", "quiet_from": "22:00"})
        assert answer.status_code == 422
        assert "a beginning and an end" in str(answer.context["form"].errors["quiet_until"])


def test_the_calendars_address_is_shown_once(vera, as_user, acme):
    browser = as_user(vera)
    page = browser.post(f"{LIST}calendar/")
    (secret,) = set(re.findall(r"/calendar/(rrc_[\w-]+)\.ics", page.content.decode()))
    assert "no-store" in page["Cache-Control"]
    assert Client().get(f"/calendar/{secret}.ics").status_code == 200
    assert secret not in browser.get(LIST).content.decode()
    browser.post(f"{LIST}calendar/revoke/")
    assert not CalendarFeed.objects.exists()
