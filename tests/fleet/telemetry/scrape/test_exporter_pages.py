"""Exporters on a machine's page: adding, changing, reading now, removing; and who may."""

from __future__ import annotations

import re

import pytest
from django.utils import timezone, translation

from fleet.guard import REASONS
from fleet.inventory.credentials import open_sealed
from fleet.inventory.models import Instance
from fleet.teams.models import AuditEntry
from fleet.telemetry.models import ScrapeTarget
from fleet.telemetry.scrape.targets import MAX_TARGETS
from fleet.telemetry.scrape.words import REFUSALS
from fleet.telemetry.tasks import scrape_shard

pytestmark = pytest.mark.django_db

URL = "http://203.0.114.7:9400/metrics"
GOOD = {"url": URL, "kind": "dcgm", "interval_seconds": "30", "token": "s3cret"}


@pytest.fixture
def machine(make_instance) -> Instance:
    instance: Instance = make_instance()
    return instance


@pytest.fixture
def target(machine) -> ScrapeTarget:
    return ScrapeTarget.objects.create(instance=machine, url=URL, kind="dcgm")


@pytest.fixture(autouse=True)
def sent(monkeypatch) -> list[str]:
    claims: list[str] = []
    monkeypatch.setattr(scrape_shard, "delay", claims.append)
    return claims


def add_page(machine: Instance) -> str:
    return f"/t/acme/instances/{machine.pk}/exporters/add/"


def page_of(target: ScrapeTarget, action: str = "") -> str:
    return f"/t/acme/exporters/{target.pk}/{action}"


def test_it_is_added_read_at_once_and_recorded_without_its_token(bob, machine, as_user, sent):
    browser = as_user(bob)
    answer = browser.post(add_page(machine), GOOD)
    assert (answer.status_code, answer.url) == (302, f"/t/acme/instances/{machine.pk}/")
    target = ScrapeTarget.objects.get()
    assert open_sealed(target.token) == {"token": "s3cret"}
    assert sent == [str(target.claim)]
    assert set(AuditEntry.objects.values_list("action", flat=True)) == {"scrape_target.add", "scrape_target.read_now"}
    assert "s3cret" not in str(list(AuditEntry.objects.values("old", "new")))
    page = browser.get(f"/t/acme/instances/{machine.pk}/").text
    assert URL in page
    assert "s3cret" not in page + browser.get(page_of(target)).text


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("url", "ftp://203.0.114.7/", "http://"),
        ("url", "http://127.0.0.1:9400/metrics", "ALLOWED_NETWORKS"),
        ("url", "http://169.254.169.254/latest", "metadata"),
        ("url", "http://me:pw@203.0.114.7/", "token has a field"),
        ("url", "", "required"),
        ("interval_seconds", "7", "not one of"),
        ("kind", "nagios", "not one of"),
        ("token", "two words", "without spaces"),
    ],
)
def test_bad_input_names_the_field_and_keeps_the_rest(bob, machine, as_user, field, value, says):
    answer = as_user(bob).post(add_page(machine), {**GOOD, field: value})
    assert answer.status_code == 422
    assert says in "".join(answer.context["form"].errors[field])
    assert list(answer.context["form"].errors) == [field]
    if field != "url":
        assert URL in answer.text
    assert not ScrapeTarget.objects.exists()


def test_the_same_address_twice_is_told_so(bob, target, as_user):
    answer = as_user(bob).post(add_page(target.instance), GOOD)
    assert "there already" in "".join(answer.context["form"].errors["url"])


def test_a_machine_has_only_so_many(bob, machine, as_user):
    for number in range(MAX_TARGETS):
        ScrapeTarget.objects.create(instance=machine, url=f"{URL}/{number}")
    answer = as_user(bob).post(add_page(machine), GOOD)
    assert "Remove one first" in "".join(answer.context["form"].errors["url"])


class TestChanging:
    def test_an_empty_token_keeps_the_one_there(self, bob, machine, as_user):
        browser = as_user(bob)
        browser.post(add_page(machine), GOOD)
        target = ScrapeTarget.objects.get()
        browser.post(page_of(target), {**GOOD, "token": "", "interval_seconds": "60", "enabled": "on"})
        target.refresh_from_db()
        assert (target.interval_seconds, target.enabled) == (60, True)
        assert open_sealed(target.token) == {"token": "s3cret"}
        change = AuditEntry.objects.get(action="scrape_target.update")
        assert (change.old, change.new) == ({"interval_seconds": 30}, {"interval_seconds": 60})

    def test_a_kept_token_does_not_follow_to_another_address(self, bob, machine, as_user):
        browser = as_user(bob)
        browser.post(add_page(machine), GOOD)
        target = ScrapeTarget.objects.get()
        answer = browser.post(page_of(target), {**GOOD, "url": "http://203.0.114.8/", "token": "", "enabled": "on"})
        assert answer.status_code == 422
        assert "type its token again" in "".join(answer.context["form"].errors["token"])
        target.refresh_from_db()
        assert target.url == URL

    def test_it_can_be_dropped(self, bob, machine, as_user):
        browser = as_user(bob)
        browser.post(add_page(machine), GOOD)
        target = ScrapeTarget.objects.get()
        browser.post(page_of(target), {**GOOD, "token": "", "drop_token": "on", "enabled": "on"})
        target.refresh_from_db()
        assert bytes(target.token) == b""

    def test_counters_of_another_page_do_not_go_on_and_a_reading_under_way_is_void(self, bob, target, as_user):
        ScrapeTarget.objects.update(memory={"at": 1.0, "counters": {"cpu": [1]}}, failures=3, error="timeout")
        browser = as_user(bob)
        browser.post(page_of(target, "read/"))
        browser.post(page_of(target), {**GOOD, "url": "http://203.0.114.8/", "token": "", "enabled": "on"})
        target.refresh_from_db()
        assert (target.memory, target.claim, target.failures, target.error) == ({}, None, 0, "")


def test_read_now_claims_it_once(bob, target, as_user, sent):
    browser = as_user(bob)
    for _ in range(2):
        browser.post(page_of(target, "read/"))
    target.refresh_from_db()
    assert sent == [str(target.claim)]


def test_removing_keeps_nothing_of_it_but_the_record(bob, target, as_user):
    browser = as_user(bob)
    assert browser.post(page_of(target, "remove/")).status_code == 302
    assert not ScrapeTarget.objects.exists()
    assert AuditEntry.objects.get(action="scrape_target.remove").old["url"] == URL
    assert browser.post(page_of(target, "remove/")).status_code == 404


def test_the_machines_page_says_how_each_fares(vera, target, as_user):
    ScrapeTarget.objects.update(
        error="status", error_detail="<b>500", failures=3, yields_to="exporter", last_ok_at=timezone.now()
    )
    page = as_user(vera).get(f"/t/acme/instances/{target.instance_id}/").text
    assert "It answers with HTTP &lt;b&gt;500." in page
    assert "3 times in a row" in page
    assert "only that one is stored" in page
    assert "Add an exporter" not in page


def test_a_viewer_may_change_nothing(vera, target, as_user):
    browser = as_user(vera)
    for path in (add_page(target.instance), page_of(target), page_of(target, "read/"), page_of(target, "remove/")):
        assert browser.post(path, GOOD).status_code == 403
    assert ScrapeTarget.objects.count() == 1


@pytest.mark.parametrize("team", ["acme", "rival"])
def test_another_team_finds_nothing(charlie, target, as_user, team):
    browser = as_user(charlie)
    paths = (
        f"instances/{target.instance_id}/exporters/add/",
        *(f"exporters/{target.pk}/{action}" for action in ("", "read/", "remove/")),
    )
    for path in paths:
        assert browser.post(f"/t/{team}/{path}", GOOD).status_code == 404
    assert ScrapeTarget.objects.get().url == URL


def test_reading_changes_nothing(bob, target, as_user):
    for action in ("read/", "remove/"):
        assert as_user(bob).get(page_of(target, action)).status_code == 405
    assert as_user(bob).get(page_of(target)).status_code == 200


def test_every_refusal_of_the_guard_has_the_same_words_here():
    with translation.override("en"):
        ours = {code: re.sub(r"\W", "", str(text))[:20] for code, text in REFUSALS.items()}
    assert ours == {code: re.sub(r"\W", "", text.replace("subject", "detail"))[:20] for code, text in REASONS.items()}
