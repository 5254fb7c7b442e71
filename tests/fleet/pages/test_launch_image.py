"""The launch page begins with the image that its address names."""

from __future__ import annotations

import pytest

from fleet.inventory.models import Image, ProviderAccount

PAGE = "/t/acme/launch/"


@pytest.fixture
def saved(acme) -> Image:
    lab = ProviderAccount.objects.create(team=acme, kind="sandbox", name="Lab", monitor_only=False)
    return Image.objects.create(account=lab, external_id="img-7", name="vision 2.5", region="west")


def test_it_is_filled_in_with_its_account(saved, bob, as_user):
    answer = as_user(bob).get(f"{PAGE}?image={saved.pk}")
    form = answer.context["form"]
    assert [form[name].value() for name in ("image_id", "account", "region")] == ["img-7", saved.account_id, "west"]
    assert "vision 2.5" in answer.text
    assert f"/t/acme/images/{saved.pk}/" in answer.text


def test_what_is_no_image_of_the_team_is_left_out(saved, rival, bob, as_user):
    theirs = ProviderAccount.objects.create(team=rival, kind="sandbox", name="Theirs")
    foreign = Image.objects.create(account=theirs, external_id="img-8", name="theirs alone")
    for word in (foreign.pk, "x", "9" * 30, ""):
        answer = as_user(bob).get(f"{PAGE}?image={word}")
        assert (answer.status_code, answer.context["form"]["image_id"].value()) == (200, None)
        assert "theirs alone" not in answer.text
