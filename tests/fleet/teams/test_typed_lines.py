"""What people type into one-line fields shows as it is stored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django import forms

from fleet.inventory import account_form, machine_forms
from fleet.inventory.models import Instance
from fleet.teams import forms as team_forms
from fleet.teams.fields import LineField
from fleet.teams.models import Project, User
from fleet.telemetry import forms as agent_forms

# Held to a pattern, or compared with what is stored and never shown to others.
EXACT = {"username", "time_zone", "ssh", "person", "action", "currency"}
TURNED = "machine \u202eabc\u2066\u200b\x07"


def text_fields() -> Iterator[tuple[str, forms.Field]]:
    for module in (account_form, agent_forms, machine_forms, team_forms):
        for form in vars(module).values():
            if isinstance(form, type) and issubclass(form, forms.Form):
                yield from ((f"{form.__name__}.{name}", field) for name, field in form.base_fields.items())


def test_every_field_for_one_line_of_text_is_cleaned():
    texts = [name for name, field in text_fields() if type(field) is forms.CharField]
    passwords = {"RegistrationForm.password", "PasswordForm.old", "PasswordForm.new"}
    secret = passwords | {"TargetForm.token", "KnownTargetForm.token"}
    assert {name for name in texts if name.partition(".")[2] not in EXACT} == secret
    assert len([field for _, field in text_fields() if isinstance(field, LineField)]) >= 8


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        (TURNED, "machine abc"),
        ("a\u3000b\tc\nd", "a b c d"),
        ("视觉组", "视觉组"),
        ("Ünïted ⚡", "Ünïted ⚡"),
    ],
)
def test_what_stays_of_a_line(typed, kept):
    assert LineField().clean(typed) == kept


def test_a_name_of_nothing_visible_is_no_name():
    with pytest.raises(forms.ValidationError):
        LineField().clean("\u202e\u2066")


def test_names_typed_on_pages_are_stored_without_what_turns_them_around(acme, alice, as_user):
    browser = as_user(alice)
    browser.post("/t/acme/settings/projects/new/", {"name": TURNED})
    profile = {"username": "alice", "name": TURNED, "email": "", "language": "", "time_zone": ""}
    browser.post("/account/profile/", profile)
    machine = {"name": TURNED, "state": "running", "currency": "USD", "tenancy": "dedicated_host"}
    browser.post("/t/acme/instances/add/", machine)
    names = {Project.objects.get().name, User.objects.get(pk=alice.pk).first_name, Instance.objects.get().name}
    assert names == {"machine abc"}
