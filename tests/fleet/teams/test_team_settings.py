from __future__ import annotations

from fleet.teams.models import AuditEntry


def test_an_admin_renames_the_team_and_its_address_stays(alice, acme, as_user):
    answer = as_user(alice).post("/t/acme/settings/team/", {"name": "Acme Labs", "currency": "EUR", "time_zone": "UTC"})
    assert answer.headers["Location"] == "/t/acme/settings/"
    acme.refresh_from_db()
    assert (acme.name, acme.slug, acme.currency) == ("Acme Labs", "acme", "EUR")
    entry = AuditEntry.objects.get(action="team.update")
    assert (entry.actor, entry.old, entry.new) == (
        alice,
        {"name": "Acme", "currency": "USD"},
        {"name": "Acme Labs", "currency": "EUR"},
    )


def test_what_cannot_be_a_currency_is_refused_and_nothing_typed_is_lost(alice, acme, as_user):
    answer = as_user(alice).post("/t/acme/settings/team/", {"name": "Acme Labs", "currency": "dollars"})
    assert answer.status_code == 422
    assert "three capital letters" in answer.text
    assert 'value="Acme Labs"' in answer.text
    acme.refresh_from_db()
    assert acme.name == "Acme"


def test_others_see_the_settings_but_no_form(vera, as_user):
    page = as_user(vera).get("/t/acme/settings/").text
    assert "<dd>Acme</dd>" in page
    assert "/settings/team/" not in page


def test_an_operator_may_not_save(bob, as_user):
    answer = as_user(bob).post("/t/acme/settings/team/", {"name": "Bob's", "currency": "EUR"})
    assert answer.status_code == 403


def test_an_admin_says_where_the_teams_days_begin(alice, acme, as_user):
    client = as_user(alice)
    typed = {"name": "Acme", "currency": "USD", "time_zone": "Asia/Shanghai"}
    client.post("/t/acme/settings/team/", typed)
    acme.refresh_from_db()
    assert acme.time_zone == "Asia/Shanghai"
    assert 'value="Asia/Shanghai"' in client.get("/t/acme/settings/").text
    assert AuditEntry.objects.get(action="team.update").new == {"time_zone": "Asia/Shanghai"}
    answer = client.post("/t/acme/settings/team/", typed | {"time_zone": "Middle/Earth"})
    assert answer.status_code == 422
    assert "No time zone has this name." in answer.text


class TestOverTheApi:
    ADDRESS = "/api/v1/teams/acme/"

    def test_an_admin_changes_only_what_is_sent(self, alice, acme, as_user):
        answer = as_user(alice).patch(self.ADDRESS, {"time_zone": "Europe/Berlin"}, content_type="application/json")
        assert answer.status_code == 200
        assert (answer.json()["time_zone"], answer.json()["name"], answer.json()["currency"]) == (
            "Europe/Berlin",
            "Acme",
            "USD",
        )
        assert AuditEntry.objects.get(action="team.update").via == "api"

    def test_wrong_values_are_named(self, alice, acme, as_user):
        for wrong in ({"time_zone": "Middle/Earth"}, {"currency": "usd"}, {"name": "A"}, {"slug": "other"}):
            answer = as_user(alice).patch(self.ADDRESS, wrong, content_type="application/json")
            assert answer.status_code == 400
            assert next(iter(wrong)) in answer.text
        acme.refresh_from_db()
        assert acme.time_zone == "UTC"

    def test_others_may_not(self, bob, charlie, acme, as_user):
        sent = {"name": "Ours"}
        assert as_user(bob).patch(self.ADDRESS, sent, content_type="application/json").status_code == 403
        assert as_user(charlie).patch(self.ADDRESS, sent, content_type="application/json").status_code == 404
