"""What a message says: what is, the evidence, the money so far, what to do; in the reader's language and zone."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone

from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.words import why_of
from tests.fleet.alerts.channels.conftest import work

pytestmark = pytest.mark.usefixtures("clock")


def lose(acme, machine, **more):
    return raise_event(
        team=acme, cause="gpu.lost", subject=f"instance:{machine.pk}", severity="urgent", instance=machine,
        since=timezone.now() - timedelta(hours=2), values={"gpu": 3, "xid": 79}, now=timezone.now(), **more,
    )  # fmt: skip


def test_it_says_what_is_since_when_what_it_costs_and_what_to_do(acme, machine, recorder, make_channel, settings):
    settings.PUBLIC_URL = "https://rackrent.example"
    make_channel(time_zone="Europe/Berlin")
    alert = lose(acme, machine)
    work()
    (message,) = recorder.sent
    facts = dict(message.facts)
    assert message.title == "train-01 lost a GPU"
    assert message.lines == [f"Evidence: {why_of(alert)}"]
    assert "GPU 3" in message.lines[0]
    assert facts["Since"] == "2026-11-30 11:00 CET (2 h)"
    assert facts["At stake"] == "$24.00 an hour"
    assert facts["Spent so far"] == "$48.00"
    assert "Restart the machine" in message.remedy
    assert message.link.url.startswith("https://rackrent.example/t/acme/")
    assert message.acts[0].url.startswith("https://rackrent.example/a/")
    assert (message.data["alert_id"], message.data["money_so_far"]) == (alert.pk, "48.00")


def test_the_readers_language(acme, machine, recorder, make_channel):
    make_channel(language="zh-hans")
    lose(acme, machine)
    work()
    (message,) = recorder.sent
    assert message.language == "zh-hans"
    assert message.severity_word == "紧急"
    assert "重启" in message.remedy
    assert message.acts[0].label == "确认或暂缓"


def test_a_person_reads_their_own_language_and_zone(acme, machine, recorder, make_channel, bob):
    bob.language, bob.time_zone = "zh-hans", "Asia/Shanghai"
    bob.save()
    make_channel(owner=bob)
    lose(acme, machine)
    work()
    (message,) = recorder.sent
    assert message.severity_word == "紧急"
    assert "18:00 CST" in dict(message.facts).values().__iter__().__next__()


def test_the_end_asks_for_nothing(acme, machine, recorder, make_channel, clock):
    make_channel()
    lose(acme, machine)
    work()
    clock.shift(timedelta(hours=1))
    clear_event(team=acme, cause="gpu.lost", subject=f"instance:{machine.pk}", now=timezone.now())
    work()
    message = recorder.sent[-1]
    assert (message.title, message.severity_word, message.remedy, message.acts) == (
        "Resolved: train-01 lost a GPU", "Resolved", "", (),
    )  # fmt: skip
    assert dict(message.facts)["Spent so far"] == "$72.00"
    assert "At stake" not in dict(message.facts)


def test_an_unknown_price_is_not_named(acme, make_instance, recorder, make_channel):
    make_channel()
    lose(acme, make_instance(name="x", price_per_hour=None))
    work()
    assert {"At stake", "Spent so far"}.isdisjoint(dict(recorder.sent[0].facts))


def test_currencies_are_not_added(acme, make_instance, recorder, make_channel):
    make_channel()
    for number in range(4):
        currency = "USD" if number % 2 else "CNY"
        lose(acme, make_instance(name=f"x-{number}", price_per_hour=Decimal(10), currency=currency))
    work()
    (message,) = recorder.sent
    assert dict(message.facts)["At stake"] in {"$20.00 + ¥20.00 an hour", "¥20.00 + $20.00 an hour"}
