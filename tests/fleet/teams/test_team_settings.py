from __future__ import annotations

from fleet.teams.models import AuditEntry


def test_an_admin_renames_the_team_and_its_address_stays(alice, acme, as_user):
    answer = as_user(alice).post("/t/acme/settings/team/", {"name": "Acme Labs", "currency": "EUR"})
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
