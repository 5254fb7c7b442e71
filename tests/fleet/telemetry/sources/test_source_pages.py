"""Settings, Sources: adding, changing, choosing a machine; errors beside the field; nobody else's."""

from __future__ import annotations

import pytest
from django.utils import timezone

from fleet.teams.models import AuditEntry
from fleet.telemetry.sources.models import PrometheusSource, SourceMachine

ADDRESS = "/t/acme/settings/sources/"
TYPED = {
    "name": "Own",
    "url": "https://prometheus.example",
    "gpu_label": "Hostname",
    "host_label": "instance",
    "interval_seconds": "30",
    "history_hours": "6",
}


@pytest.fixture
def source(acme):
    return PrometheusSource.objects.create(team=acme, name="Own", url="https://prometheus.example")


def test_bob_adds_one_and_alice_sees_who_did(bob, as_user, acme):
    answer = as_user(bob).post(ADDRESS, {**TYPED, "token": "sesame"})
    source = acme.prometheus_sources.get()
    assert answer.url == f"{ADDRESS}{source.pk}/"
    assert "sesame" not in as_user(bob).get(answer.url).text
    entry = AuditEntry.objects.get(action="source.add")
    assert entry.new["has_token"] is True
    assert "sesame" not in str(entry.new)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("url", "http://10.0.0.1:9090", "ALLOWED_NETWORKS"),
        ("selector", "job=dcgm", "Write matchers with commas between them"),
        ("gpu_label", "a b", "A label&#x27;s name has letters"),
        ("history_hours", "500", "Select a valid choice"),
    ],
)
def test_what_is_wrong_stands_beside_its_field_and_nothing_typed_is_lost(bob, as_user, field, value, text):
    answer = as_user(bob).post(ADDRESS, {**TYPED, "name": "Kept", field: value})
    assert answer.status_code == 422
    assert text in answer.text
    assert "Kept" in answer.text
    assert not PrometheusSource.objects.exists()


def test_an_empty_token_keeps_the_one_that_is_there(bob, as_user, acme):
    client = as_user(bob)
    client.post(ADDRESS, {**TYPED, "token": "sesame"})
    source = acme.prometheus_sources.get()
    sealed = bytes(source.token)
    client.post(f"{ADDRESS}{source.pk}/", {**TYPED, "name": "Renamed", "enabled": "on"})
    source.refresh_from_db()
    assert (source.name, bytes(source.token)) == ("Renamed", sealed)
    client.post(f"{ADDRESS}{source.pk}/", {**TYPED, "drop_token": "on"})
    source.refresh_from_db()
    assert (bytes(source.token), source.enabled) == (b"", False)


def test_a_machine_is_chosen_for_a_label(bob, as_user, source, make_instance):
    machine = make_instance(name="train-01")
    row = SourceMachine.objects.create(source=source, label="10.0.0.7", last_at=timezone.now())
    as_user(bob).post(f"{ADDRESS}machines/{row.pk}/", {"instance": machine.pk})
    row.refresh_from_db()
    assert (row.instance, row.chosen) == (machine, True)


def test_its_failure_is_explained(alice, as_user, source):
    PrometheusSource.objects.update(error="no_prometheus", failures=2)
    assert "It answers, but not as a Prometheus does" in as_user(alice).get(ADDRESS).text


def test_labels_are_hostile(bob, as_user, source):
    SourceMachine.objects.create(source=source, label="<script>alert(1)</script>", last_at=timezone.now())
    assert "<script>alert" not in as_user(bob).get(f"{ADDRESS}{source.pk}/").text


def test_vera_looks_and_changes_nothing(vera, as_user, source):
    client = as_user(vera)
    assert client.get(ADDRESS).status_code == 200
    assert client.post(ADDRESS, TYPED).status_code == 403
    assert client.get(f"{ADDRESS}{source.pk}/").status_code == 403


def test_charlie_sees_nothing(charlie, as_user, source):
    assert as_user(charlie).get(ADDRESS).status_code == 404
    assert as_user(charlie).get(f"/t/rival/settings/sources/{source.pk}/").status_code == 404


def test_removed_it_is_gone(bob, as_user, source):
    as_user(bob).post(f"{ADDRESS}{source.pk}/remove/")
    assert not PrometheusSource.objects.exists()
    assert AuditEntry.objects.filter(action="source.remove").exists()
