"""How a file is asked for: on a page, over the API, on the command line; by whom, and what a wrong question is told."""

from __future__ import annotations

from datetime import date, timedelta
from io import StringIO
from pathlib import Path

import pytest
import time_machine
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.costs.exports.charges import days_of
from fleet.costs.exports.export import Wish, open_export
from fleet.costs.month import Month
from fleet.teams.audit import Actor
from fleet.teams.models import Membership, Role, Scope
from fleet.teams.tokens import create_token
from tests.fleet.costs.exports.conftest import body_of
from tests.fleet.costs.seeding import spend_on

EXPORT = "/t/acme/costs/export/"
API = "/api/v1/costs/export/"


@pytest.fixture(autouse=True)
def in_december():
    with time_machine.travel("2026-12-04T10:00:00Z", tick=False) as clock:
        yield clock


def test_every_member_may_and_nobody_else(as_user, vera, charlie, month_of_money):
    answer = as_user(vera).get(EXPORT, {"month": "2026-11", "format": "focus", "version": "1.3"})
    assert answer["Content-Disposition"] == 'attachment; filename="rackrent-acme-focus-1.3-2026-11.csv"'
    assert (answer["Content-Type"], answer["Cache-Control"]) == ("text/csv", "no-store")
    assert as_user(charlie).get(EXPORT).status_code == 404
    assert as_user(charlie).get(API, {"team": "acme"}).status_code == 404


def test_the_same_file_over_the_api(client, acme, alice, as_user, month_of_money):
    _, new = create_token(actor=Actor.system("test"), team=acme, name="x", scope=Scope.READ)
    asked = {"month": "2026-11", "format": "focus"}
    answer = client.get(API, asked, headers={"Authorization": f"Bearer {new.secret}"})
    assert answer.status_code == 200
    assert answer.getvalue() == body_of(as_user(alice), asked)


@pytest.mark.parametrize(
    ("name", "word", "remedy"),
    [
        ("month", "2026-13", "YYYY-MM"),
        ("month", "2027-01", "2026-12 at the latest"),
        ("format", "xlsx", "csv, parquet, focus, focus-parquet"),
        ("version", "1.1", "1.0, 1.2, 1.3"),
        ("bom", "yes", "0, 1"),
    ],
)
def test_a_wrong_word_is_refused_by_name(as_user, alice, name, word, remedy):
    answer = as_user(alice).get(API, {name: word})
    assert (answer.status_code, answer.json()["field"]) == (400, name)
    assert remedy in answer.json()["detail"]
    page = as_user(alice).get(EXPORT, {name: word}, follow=True)
    assert page.redirect_chain == [("/t/acme/costs/", 302)]
    assert f"{name}: " in page.content.decode()


def test_a_person_in_two_teams_says_which(as_user, alice, rival):
    Membership.objects.create(team=rival, user=alice, role=Role.VIEWER)
    assert as_user(alice).get(API).json()["field"] == "team"
    assert as_user(alice).get(API, {"team": "rival"}).status_code == 200


def test_the_command_writes_a_whole_file_or_none(acme, as_user, alice, month_of_money, tmp_path: Path):
    file = tmp_path / "november.csv"
    said = StringIO()
    options = {"team": "acme", "month": "2026-11", "format": "focus", "focus_version": "1.0"}
    call_command("costs_export", **options, output=file, stdout=said)
    assert file.read_bytes() == body_of(as_user(alice), {"month": "2026-11", "format": "focus", "version": "1.0"})
    assert f"{file.stat().st_size} bytes" in said.getvalue()
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"team": "none"}, "no team with the address 'none'"),
        ({"team": "acme", "month": "soon"}, "--month: Give a month as YYYY-MM"),
        ({"team": "acme", "output": Path("/nowhere/x.csv")}, "cannot be written: No such file"),
    ],
)
def test_the_command_says_what_is_wrong(acme, options, says):
    with pytest.raises(CommandError, match=says):
        call_command("costs_export", **options)


def test_days_are_those_of_the_team_with_23_and_25_hours(acme, make_instance):
    acme.time_zone = "America/New_York"
    acme.save()
    spend_on(acme, date(2026, 11, 1), 25, instance=make_instance())
    month = Month.of(acme, now=timezone.now(), name="2026-11")
    found = list(days_of(acme, month))
    assert len(found) == 30
    assert found[0].ends_at - found[0].starts_at == timedelta(hours=25)
    assert [one.ends_at for one in found[:-1]] == [one.starts_at for one in found[1:]]


def test_one_day_is_read_at_a_time_and_more_machines_ask_no_more_questions(acme, make_instance):
    machines = [make_instance(name=f"m-{number}", external_id=f"m-{number}") for number in range(6)]
    for machine in machines[:2]:
        spend_on(acme, date(2026, 11, 3), 1, instance=machine)
    wish = Wish.of({"month": "2026-11", "format": "focus"}, team=acme, now=timezone.now())

    def queries() -> int:
        with CaptureQueriesContext(connection) as asked:
            b"".join(open_export(acme, wish).pieces)
        return len(asked)

    before = queries()
    for machine in machines[2:]:
        spend_on(acme, date(2026, 11, 3), 1, instance=machine)
    assert queries() == before
    with CaptureQueriesContext(connection) as asked:
        next(days_of(acme, wish.month))
    assert len(asked) <= 4


def test_a_month_without_money_is_a_file_with_its_head(as_user, vera):
    lines = body_of(as_user(vera), {"month": "2026-11", "format": "focus"}).decode().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("BilledCost,BillingAccountId")
