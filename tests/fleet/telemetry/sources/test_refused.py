"""What a source may not be or do: refused addresses, foreign tokens, other teams' machines, answers that are none."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest

from fleet.inventory.models import Instance
from fleet.telemetry.models import Agent, GpuSample
from fleet.telemetry.partitions import ensure_partitions
from fleet.telemetry.sources import read as reading
from fleet.telemetry.sources.manage import SourceError, SourceWords, choose_machine, plain_url, update_source
from fleet.telemetry.sources.models import PrometheusSource, SourceMachine
from fleet.telemetry.sources.read import read_source
from tests.fleet.telemetry.enrolling import ACTOR
from tests.fleet.telemetry.sources.conftest import gpu_series
from tests.fleet.telemetry.store.fake import fake_store

URL = "http://127.0.0.1:9090"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"url": "ftp://prometheus.example"}, "url"),
        ({"url": "http://10.0.0.1:9090"}, "url"),
        ({"url": "http://127.0.0.1:99999"}, "url"),
        ({"url": "http://169.254.169.254"}, "url"),
        ({"url": "http://user:secret@prometheus.example"}, "url"),
        ({"url": "https://prometheus.example/?tenant=1"}, "url"),
        ({"selector": 'job="dcgm"} or up{'}, "selector"),
        ({"selector": "job=dcgm"}, "selector"),
        ({"gpu_label": 'Hostname"'}, "gpu_label"),
        ({"host_label": ""}, "host_label"),
        ({"interval_seconds": 1}, "interval_seconds"),
        ({"tenant": "日本"}, "tenant"),
    ],
)
def test_bad_words_are_refused_by_name(make_source, words, field):
    with pytest.raises(SourceError) as refused:
        make_source(words.pop("url", URL), **words)
    assert refused.value.field == field
    assert not PrometheusSource.objects.exists()


@pytest.mark.django_db
def test_a_token_is_sealed_and_goes_to_no_other_address(make_source):
    source = make_source(URL, token="sesame")
    assert b"sesame" not in bytes(source.token)
    with pytest.raises(SourceError) as refused:
        update_source(
            actor=ACTOR,
            source=source,
            words=SourceWords(name="Own", url="http://127.0.0.1:1"),
            enabled=True,
            token=None,
        )
    assert refused.value.field == "token"


@pytest.mark.parametrize("tail", ["", "/", "/api/v1/query", "/api/v1/", "/graph"])
def test_the_address_of_a_page_of_it_is_understood(tail):
    assert (
        plain_url(f"https://prometheus.example/select/0/prometheus{tail}")
        == "https://prometheus.example/select/0/prometheus"
    )


@pytest.mark.django_db
def test_another_teams_machine_cannot_be_chosen(make_source, rival, account):
    row = SourceMachine.objects.create(source=make_source(URL), label="node-1", last_at=datetime.now(UTC))
    foreign = Instance.objects.create(team=rival, account=account, external_id="x", name="node-1")
    with pytest.raises(SourceError):
        choose_machine(actor=ACTOR, row=row, instance=foreign)


def answering(monkeypatch, *series):
    async def ask(*_args, **_more):
        return list(series)

    monkeypatch.setattr(reading, "_ask", ask)


def read(source):
    claim = uuid.uuid4()
    PrometheusSource.objects.filter(pk=source.pk).update(claim=claim)
    return read_source(source.pk, claim=claim)


@pytest.fixture
def now(transactional_db):
    now = datetime.now(UTC)
    ensure_partitions(now=now)
    return now


def test_a_machine_of_that_name_in_another_team_gets_nothing(make_source, monkeypatch, now, rival, account):
    foreign = Instance.objects.create(team=rival, account=account, external_id="x", name="node-1")
    answering(monkeypatch, gpu_series([(now.timestamp() + 1, 50.0)]))
    assert read(make_source(URL)).code == ""
    assert not foreign.gpus.exists()


def test_a_persons_choice_is_not_matched_away(make_source, monkeypatch, now, make_instance):
    make_instance(name="node-1")
    source = make_source(URL)
    answering(monkeypatch, gpu_series([(now.timestamp() + 1, 50.0)]))
    row = SourceMachine.objects.create(source=source, label="node-1", last_at=now)
    choose_machine(actor=ACTOR, row=row, instance=None)
    read(source)
    row.refresh_from_db()
    assert row.instance is None
    assert not GpuSample.objects.exists()


def test_it_stands_by_while_an_agent_reports(make_source, monkeypatch, now, make_instance):
    machine = make_instance(name="node-1")
    Agent.objects.create(instance=machine, token_hash="a", batch_at=now)
    answering(monkeypatch, gpu_series([(now.timestamp() + 1, 50.0)]))
    assert read(make_source(URL)).code == ""
    assert not GpuSample.objects.exists()


def test_samples_are_asked_for_again_until_they_are_stored(make_source, monkeypatch, now, make_instance, settings):
    make_instance(name="node-1")
    source = make_source(URL)
    answering(monkeypatch, gpu_series([(now.timestamp() + 1, 50.0)]))
    settings.TELEMETRY_STORE, settings.TELEMETRY_WRITE_URL = "prometheus", "http://127.0.0.1:9/write"
    assert read(source).code == "not_stored"
    before = source.read_until
    source.refresh_from_db()
    assert source.read_until == before


@pytest.mark.parametrize(
    ("status", "answer", "code"),
    [
        (200, b"<html>sign in</html>", "no_prometheus"),
        (401, b"", "token"),
        (302, b"", "redirect"),
        (503, b"", "status"),
    ],
)
def test_an_answer_that_is_none_is_named(make_source, now, status, answer, code):
    with fake_store() as fake:
        fake.status, fake.answer, fake.headers = status, answer, {"Location": "/login"} if status == 302 else {}
        source = make_source(fake.url, token="sesame", tenant="fleet-1")
        assert read(source).code == code
        headers = fake.asked[0][1]
    assert (headers["authorization"], headers["x-scope-orgid"]) == ("Bearer sesame", "fleet-1")


@pytest.mark.django_db
def test_nobody_reads_it_without_the_claim(make_source):
    assert read_source(make_source(URL).pk, claim=uuid.uuid4()) is None
