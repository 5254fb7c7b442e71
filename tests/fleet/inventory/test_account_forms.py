"""The account form of every kind of provider comes from what its adapter declares: it is drawn, and refuses bad input at its field."""

from __future__ import annotations

import pytest

from fleet.inventory.account_form import PREFIX, AccountForm
from fleet.inventory.provider_choices import SELF_MADE
from fleet.providers.errors import InvalidOption
from fleet.providers.registry import adapters

pytestmark = pytest.mark.django_db
KINDS = [kind for kind, adapter in adapters().items() if adapter.fields]
WITH_SECRET = [kind for kind in KINDS if any(field.secret for field in adapters()[kind].fields)]
BASE = {"name": "Lab", "poll_interval_seconds": "60", "monitor_only": "on"}


def refusal_of(kind: str, typed: dict[str, str]) -> InvalidOption | None:
    try:
        adapters()[kind](typed)
    except InvalidOption as refused:
        return refused
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_drawn_with_a_field_for_each_that_is_declared(acme, kind):
    html = AccountForm(team=acme, kind=kind).as_p()
    for field in adapters()[kind].fields:
        assert f'name="{PREFIX}{field.name}"' in html


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_form_names_each_field_that_is_needed(acme, kind):
    form = AccountForm({**BASE}, team=acme, kind=kind)
    assert not form.is_valid()
    required = {PREFIX + field.name for field in adapters()[kind].fields if field.required}
    assert required <= set(form.errors)


@pytest.mark.parametrize("kind", WITH_SECRET)
def test_what_the_adapter_refuses_stands_at_its_field(acme, kind):
    """A secret with a letter that no header can carry: refused by every adapter, or accepted because it is only signed with."""
    declared = adapters()[kind].fields
    typed = {field.name: field.default or "a1" for field in declared} | {
        field.name: "schlüssel\x07" for field in declared if field.secret
    }
    refused = refusal_of(kind, typed)
    form = AccountForm({**BASE, **{PREFIX + name: value for name, value in typed.items()}}, team=acme, kind=kind)
    valid = form.is_valid()
    if refused is None:
        assert valid, form.errors
    else:
        assert PREFIX + refused.field in form.errors


@pytest.mark.parametrize("kind", WITH_SECRET)
def test_a_secret_is_never_drawn_again(acme, kind):
    declared = adapters()[kind].fields
    typed = {PREFIX + field.name: "typed-SECRET-0123456789" for field in declared if field.secret}
    html = AccountForm({**BASE, **typed}, team=acme, kind=kind).as_p()
    assert "typed-SECRET" not in html


@pytest.mark.parametrize("kind", sorted(set(KINDS) - set(SELF_MADE)))
def test_the_page_to_add_one_says_what_the_adapter_says(as_user, alice, acme, kind):
    page = as_user(alice).get(f"/t/{acme.slug}/settings/providers/new/{kind}/").content.decode()
    assert adapters()[kind].label in page
    assert all(f'name="{PREFIX}{field.name}"' in page for field in adapters()[kind].fields)
