from __future__ import annotations

import csv
from datetime import UTC, datetime
from io import StringIO

import pytest
from django.db import DatabaseError, connection, transaction

from fleet.teams.audit import record
from fleet.teams.models import AuditEntry


@pytest.fixture
def entries(alice, bob, acme, rival, charlie, project, by):
    record(actor=by(alice), team=acme, action="project.create", target=project, new={"name": "Vision"})
    record(actor=by(bob), team=acme, action="machine.hold", new={"reason": "=HYPERLINK(1)"})
    record(actor=by(charlie), team=rival, action="project.create", new={"name": "Secret plan"})


def rows_of(answer) -> list[dict[str, str]]:
    return list(csv.DictReader(StringIO(answer.content.decode("utf-8-sig"))))


def test_an_admin_reads_who_did_what_from_where(entries, alice, as_user):
    page = as_user(alice).get("/t/acme/settings/audit/").text
    assert "project.create" in page
    assert "192.0.2.7" in page
    assert "Secret plan" not in page


@pytest.mark.parametrize(
    ("query", "people"),
    [
        ("", ["bob", "alice"]),
        ("?person=BO", ["bob"]),
        ("?action=project", ["alice"]),
        ("?person=charlie", []),
        ("?until=2020-01-01", []),
        ("?since=2020-01-01", ["bob", "alice"]),
    ],
)
def test_it_is_filtered(entries, alice, as_user, query, people):
    assert [row["person"] for row in rows_of(as_user(alice).get(f"/t/acme/settings/audit.csv{query}"))] == people


def test_days_are_whole_and_in_the_readers_zone(alice, acme, by, as_user, time_machine):
    time_machine.move_to(datetime(2026, 11, 30, 17, 0, tzinfo=UTC))
    record(actor=by(alice), team=acme, action="late.evening")
    alice.time_zone = "Asia/Shanghai"
    alice.save()
    browser = as_user(alice)
    assert not rows_of(browser.get("/t/acme/settings/audit.csv?until=2026-11-30"))
    assert rows_of(browser.get("/t/acme/settings/audit.csv?since=2026-12-01&until=2026-12-01"))


def test_a_day_that_is_none_is_said(alice, as_user):
    answer = as_user(alice).get("/t/acme/settings/audit/?since=yesterday")
    assert answer.status_code == 422
    assert "Enter a valid date" in answer.text


def test_a_name_made_to_be_a_formula_comes_out_as_text(acme, alice, as_user):
    alice.username = "=cmd|'/c calc'!A0"
    alice.save()
    browser = as_user(alice)
    browser.post("/t/acme/settings/team/", {"name": "@SUM(1)", "currency": "USD", "time_zone": "UTC"})
    row = rows_of(browser.get("/t/acme/settings/audit.csv"))[0]
    assert row["person"].startswith("'=")
    assert row["target"].startswith("'@")


def test_too_many_rows_are_not_cut_in_silence(entries, alice, as_user, monkeypatch):
    monkeypatch.setattr("fleet.teams.views.audit_log.MAX_CSV_ROWS", 1)
    answer = as_user(alice).get("/t/acme/settings/audit.csv?person=b", follow=True)
    assert rows_of(answer) != []
    answer = as_user(alice).get("/t/acme/settings/audit.csv", follow=True)
    assert "Choose fewer days" in answer.text


def test_only_fields_that_say_something_are_shown():
    entry = AuditEntry(
        old={"name": "a", "limit": 3}, new={"name": "", "limit": 0, "labels": {}, "region": "", "on": False}
    )
    assert entry.changes == [("name", "a", ""), ("limit", 3, 0), ("on", None, False)]


def test_pages_keep_the_filter(alice, acme, by, as_user):
    for _ in range(51):
        record(actor=by(alice), team=acme, action="machine.poke")
    page = as_user(alice).get("/t/acme/settings/audit/?action=poke").text
    assert 'href="?action=poke&amp;page=2"' in page


@pytest.mark.parametrize("change", [lambda rows: rows.update(action="x"), lambda rows: rows.delete()])
def test_nobody_edits_it_not_even_the_program(entries, change):
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        change(AuditEntry.objects.all())


def test_nobody_empties_it(entries):
    with connection.cursor() as cursor:
        # Switched off for the tests that commit; back with the end of this test's transaction.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE fleet_auditentry ENABLE TRIGGER not_emptied")
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            cursor.execute("TRUNCATE fleet_auditentry")
    assert AuditEntry.objects.exists()


def test_it_outlives_the_person_and_the_team(entries, alice, acme):
    from fleet.teams.models import Team, User

    User.objects.filter(pk=alice.pk).delete()
    Team.objects.filter(pk=acme.pk).delete()
    assert AuditEntry.objects.filter(actor_label="alice").exists()
