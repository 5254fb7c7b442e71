"""Schedules on their page and over the API: sentences, the next turns, what may not be typed, and who may."""

from __future__ import annotations

from datetime import UTC, datetime, time
from html import unescape

import pytest
import time_machine

from fleet.idle.schedules.manage import ScheduleSaid, save_schedule
from fleet.idle.schedules.models import PowerSchedule
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry

pytestmark = pytest.mark.django_db
LIST = "/t/acme/idle/schedules/"
API = "/api/v1/power-schedules/"
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.fixture(autouse=True)
def frozen():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def typed(make_instance):
    return {
        "name": "Nights", "enabled": "on", "machines": [str(make_instance().pk)], "days": ["0", "1", "2", "3", "4"], "start_at": "08:00",
        "stop_at": "20:00", "notice_minutes": "30", "holidays": "DE", "holidays_region": "BY", "time_zone": "Europe/Berlin",
    }  # fmt: skip


def page(answer) -> str:
    return unescape(answer.content.decode())


def test_one_is_written_and_said_as_a_sentence_with_its_next_turns(typed, as_user, bob, vera):
    assert as_user(bob).post(LIST + "add/", typed).status_code == 302
    text = page(as_user(vera).get(LIST))
    assert "Monday to Friday it starts them at 08:00 and stops them at 20:00." in text
    assert "Nothing starts on holidays of Germany (BY)" in text
    for turn in ("Mon 2026-11-30, 19:00: stop", "Tue 2026-12-01, 07:00: start", "Tue 2026-12-01, 19:00: stop"):
        assert turn in text
    assert "train-01 is left alone" in text
    assert AuditEntry.objects.get(action="power_schedule.add").new["stop_at"] == "20:00"


@pytest.mark.parametrize(
    ("wrong", "field", "says"),
    [
        ({"name": " "}, "name", "This field is required"),
        ({"days": []}, "days", "Choose the days"),
        ({"machines": []}, "machines", "Choose machines, or a project or a label"),
        ({"label_name": "tier"}, "machines", "not both"),
        ({"machines": [], "label_value": "dev"}, "label_name", "Name the label"),
        ({"start_at": "", "stop_at": ""}, "stop_at", "Say when they are stopped"),
        ({"stop_at": "08:00"}, "stop_at", "the same moment"),
        ({"time_zone": "Mars/Olympus"}, "time_zone", "There is no such time zone"),
        ({"holidays_region": "XX"}, "holidays", "has no such region"),
        ({"notice_minutes": "9999"}, "notice_minutes", "less than or equal to 1440"),
    ],
)
def test_what_may_not_be_is_told_at_its_field_and_kept(typed, as_user, bob, wrong, field, says):
    answer = as_user(bob).post(LIST + "add/", {**typed, **wrong})
    assert answer.status_code == 422
    assert any(says in text for text in answer.context["form"].errors[field])
    assert 'value="20:00"' in page(answer) or "stop_at" in wrong
    assert not PowerSchedule.objects.exists()


def test_it_is_changed_and_removed_by_those_who_may(typed, as_user, alice, vera, charlie):
    admin = as_user(alice)
    admin.post(LIST + "add/", typed)
    one = PowerSchedule.objects.get()
    assert admin.post(f"{LIST}{one.pk}/", {**typed, "stop_at": "22:00", "enabled": ""}).status_code == 302
    one.refresh_from_db()
    assert (one.stop_at, one.enabled) == (time(22), False)
    for person, code in ((vera, 403), (charlie, 404)):
        assert as_user(person).post(f"{LIST}{one.pk}/remove/").status_code == code
    assert admin.post(f"{LIST}{one.pk}/remove/").status_code == 302
    assert admin.get(f"{LIST}{one.pk}/").status_code == 404


def test_an_empty_page_says_what_to_do(acme, as_user, vera):
    assert "A schedule stops machines in the evening" in page(as_user(vera).get(LIST))


class TestApi:
    def test_written_changed_and_removed(self, make_instance, as_user, bob, vera, charlie):
        machine = make_instance()
        said = {"name": "Nights", "machines": [machine.pk], "start_at": "08:00", "stop_at": "20:00"}
        made = as_user(bob).post(API, said, content_type="application/json")
        assert made.status_code == 201, made.content
        assert (made.json()["days"], made.json()["next"][0]) == (
            [0, 1, 2, 3, 4],
            {"turn": "stop", "at": "2026-11-30T20:00:00Z"},
        )
        address = f"{API}{made.json()['id']}/"
        changed = as_user(bob).patch(address, {"enabled": False}, content_type="application/json")
        assert (changed.status_code, changed.json()["next"]) == (200, [])
        assert as_user(vera).patch(address, {"enabled": True}, content_type="application/json").status_code == 403
        assert as_user(charlie).get(address).status_code == 404
        assert as_user(bob).delete(address).status_code == 204

    def test_a_mistake_names_its_field(self, acme, as_user, bob):
        answer = as_user(bob).post(API, {"name": "Nights", "stop_at": "20:00"}, content_type="application/json")
        assert answer.status_code == 400
        assert "machines" in answer.content.decode()


def test_machines_of_other_teams_are_none(rival, acme, alice, make_instance):
    with pytest.raises(Exception, match="Choose machines of this team"):
        save_schedule(
            actor=Actor(alice, "alice", "page"), team=rival, now=NOW,
            said=ScheduleSaid(name="x", machines=frozenset({make_instance().pk}), stop_at=time(20)),
        )  # fmt: skip
