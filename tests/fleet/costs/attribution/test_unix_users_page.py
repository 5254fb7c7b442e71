"""The page on which users of the operating system become people."""

from __future__ import annotations

from django.utils import timezone

from fleet.costs.attribution.hours import hour_of
from fleet.costs.attribution.models import UnixUse, UnixUser

USERS = "/t/acme/costs/rules/users/"


def sent(**more):
    return {"name": "ada", "instance": "", "owner": "", "project": "", **more}


def test_a_user_is_mapped_and_removed(machine, bob, as_user):
    instance = machine()
    browser = as_user(bob)
    assert browser.post(USERS, sent(owner=bob.pk, instance=instance.pk)).status_code == 302
    mapping = UnixUser.objects.get()
    assert (mapping.name, mapping.owner, mapping.instance) == ("ada", bob, instance)
    assert "train-01" in browser.get(USERS).content.decode()
    browser.post(f"{USERS}{mapping.pk}/remove/")
    assert not UnixUser.objects.exists()


def test_users_that_nobody_mapped_are_listed(machine, acme, bob, as_user):
    hour = hour_of(timezone.now())
    for name, seconds in (("<b>eve</b>", 7200.0), ("ada", 100.0)):
        UnixUse.objects.create(instance=machine(name), hour=hour, unix_user=name, gpu_seconds=seconds)
    UnixUser.objects.create(team=acme, name="ada", owner=bob)
    text = as_user(bob).get(USERS).content.decode()
    assert "&lt;b&gt;eve&lt;/b&gt;" in text
    assert "2.0" in text
    assert "Seen, and nobody" in text


def test_a_mapping_to_nobody_is_refused(machine, bob, as_user):
    page = as_user(bob).post(USERS, sent())
    assert page.status_code == 422
    assert "Choose a member or a project" in page.content.decode()


def test_viewers_only_look_and_others_find_nothing(acme, rival, bob, vera, charlie, as_user):
    mapping = UnixUser.objects.create(team=acme, name="ada", owner=bob)
    assert as_user(vera).get(USERS).status_code == 200
    assert as_user(vera).post(USERS, sent(owner=bob.pk)).status_code == 403
    assert as_user(vera).post(f"{USERS}{mapping.pk}/remove/").status_code == 403
    assert as_user(charlie).get(USERS).status_code == 404
    assert as_user(charlie).post(f"/t/rival/costs/rules/users/{mapping.pk}/remove/").status_code == 404
    assert UnixUser.objects.count() == 1
