"""The inbox: what is listed where, in which order, and what the page says of it."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.alerts.channels.models import Channel, Delivery
from fleet.alerts.door import clear_event, raise_event
from fleet.alerts.inbox import PAGE_SIZE
from fleet.alerts.people import acknowledge_alert, snooze_alert
from fleet.teams.audit import Actor

INBOX = "/t/acme/alerts/"


@pytest.fixture
def trouble(acme, make_instance):
    """trouble("train-01", "gpu.lost", price=3) opens an alert of a machine of that name."""

    def raise_one(name, cause="machine.unreachable", *, severity="urgent", price=24, signals=1, **fields):
        machine = make_instance(name=name, price_per_hour=Decimal(price), **fields)
        now = timezone.now()
        return [
            raise_event(
                team=acme, cause=cause, subject=f"instance:{machine.pk}", severity=severity, instance=machine,
                signal=cause.replace(".", "_"), detail=f"part {number}", now=now,
            )
            for number in range(signals)
        ][-1]  # fmt: skip

    return raise_one


def titles(client, query=""):
    text = client.get(INBOX + query).text
    return re.findall(r'id="title-\d+"[^>]*>([^<]+)</a>', text)


def test_worst_first_then_dearest(trouble, alice, as_user):
    trouble("note-01", severity="note", price=90)
    trouble("cheap-01", severity="urgent", price=2)
    trouble("dear-01", severity="urgent", price=27)
    trouble("warn-01", "gpu.throttled", severity="warning", price=50)
    assert [title.split()[0] for title in titles(as_user(alice))] == ["dear-01", "cheap-01", "warn-01", "note-01"]


def test_open_snoozed_and_closed_are_apart_with_their_counts(trouble, acme, alice, as_user, by):
    now = timezone.now()
    trouble("open-01")
    snooze_alert(actor=by(alice), alert=trouble("asleep-01"), now=now, until=now + timedelta(hours=1))
    over = trouble("over-01")
    clear_event(team=acme, cause=over.cause, subject=over.subject, now=now)
    client = as_user(alice)
    assert [titles(client, f"?show={which}")[0].split()[0] for which in ("open", "snoozed", "closed")] == [
        "open-01",
        "asleep-01",
        "over-01",
    ]
    tabs = re.findall(r'id="tab-\w+"[^>]*>([^<]+)<', client.get(INBOX).text)
    assert tabs == ["Open 1", "Snoozed 1", "Closed 1"]


def test_what_closed_long_ago_is_not_listed(trouble, acme, alice, as_user):
    over = trouble("over-01")
    clear_event(team=acme, cause=over.cause, subject=over.subject, now=timezone.now() - timedelta(days=31))
    assert titles(as_user(alice), "?show=closed") == []


def test_chips_narrow_by_severity(trouble, alice, as_user):
    trouble("bad-01")
    trouble("so-so-01", severity="warning")
    client = as_user(alice)
    assert [title.split()[0] for title in titles(client, "?severity=warning")] == ["so-so-01"]
    assert titles(client, "?severity=note") == []
    assert "No alert of this severity" in client.get(INBOX + "?severity=note").text


def test_lines_gather_under_owners_and_providers(trouble, alice, bob, as_user):
    trouble("a-01", owner=bob)
    trouble("b-01")
    text = as_user(alice).get(INBOX + "?by=owner").text
    assert text.index("bob") < text.index("a-01 went quiet") < text.index("nobody") < text.index("b-01 went quiet")
    assert "By hand" in as_user(alice).get(INBOX + "?by=provider").text


def test_a_line_says_money_state_and_what_folds_under_it(trouble, alice, as_user, by):
    alert = trouble("train-01", signals=3, gpu_model="H100", gpus=8, region="eu-1")
    acknowledge_alert(actor=by(alice), alert=alert, now=timezone.now(), note="I <look>")
    text = as_user(alice).get(INBOX).text
    for said in ("$24.00/h", "8 × H100", "3 signals, one cause", "Acknowledged by alice", "I &lt;look&gt;", "eu-1"):
        assert said in text
    assert "Look at the machine in the provider&#x27;s console" in text
    assert "1 open, 3 signals folded under them; $24.00/h at stake" in text


def test_two_alerts_of_one_machine_put_its_price_at_stake_once(acme, make_instance, alice, as_user):
    machine = make_instance(price_per_hour=Decimal(24))
    for cause in ("gpu.lost", "work.stalled"):
        raise_event(
            team=acme, cause=cause, subject=f"instance:{machine.pk}", severity="urgent", instance=machine, now=timezone.now()
        )  # fmt: skip
    assert "2 open, 2 signals folded under them; $24.00/h at stake" in as_user(alice).get(INBOX).text


def test_an_empty_inbox_says_what_comes_next(acme, alice, vera, as_user):
    assert "Nothing needs you" in as_user(alice).get(INBOX).text
    assert "Plan maintenance" in as_user(alice).get(INBOX).text
    assert "Plan maintenance" not in as_user(vera).get(INBOX).text


def test_the_rail_and_the_strip_count(trouble, acme, alice, as_user):
    client = as_user(alice)
    assert 'aria-label="0 open" hidden' in client.get("/t/acme/settings/").text
    trouble("train-01")
    text = client.get("/t/acme/settings/").text
    assert re.search(r'id="count-alerts" aria-label="1 open">1<', text)
    assert "$24.00/h at stake" in text


def test_a_script_gets_the_parts_that_move(trouble, alice, as_user):
    trouble("train-01")
    text = as_user(alice).get(INBOX, headers={"HX-Request": "true"}).text
    assert "<html" not in text
    assert text.lstrip().startswith('<section class="panel inbox"')
    assert re.findall(r'id="([\w-]+)"[^>]*hx-swap-oob', text) == ["inbox-head", "figures", "count-alerts"]


def test_a_line_says_who_was_told_and_what_failed(trouble, acme, alice, as_user):
    alert = trouble("train-01")
    client = as_user(alice)
    assert "Nobody was told yet." in client.get(INBOX).text
    for name, state in (("#gpu-alerts", "sent"), ("运维群", "dead"), ("later", "queued")):
        channel = Channel.objects.create(team=acme, kind="webhook", name=name)
        Delivery.objects.create(channel=channel, alert=alert, state=state, sent_at=timezone.now())
    (told,) = re.findall(r'<p class="told">Told:.*?</p>', client.get(INBOX).text)
    assert "#gpu-alerts" in told
    assert "运维群 failed" in told
    assert "later" not in told


def test_a_hostile_name_is_text(trouble, alice, as_user):
    trouble("<script>x</script>")
    assert "<script>x" not in as_user(alice).get(INBOX).text


def test_other_teams_alerts_are_not_there(trouble, acme, rival, charlie, as_user):
    alert = trouble("train-01")
    assert as_user(charlie).get(INBOX).status_code == 404
    assert titles(as_user(charlie)) == []
    assert as_user(charlie).get(f"/t/rival/alerts/{alert.pk}/").status_code == 404


@pytest.mark.parametrize("which", ["open", "snoozed", "closed"])
def test_more_than_a_page_of_alerts_costs_as_many_queries_as_one(which, trouble, acme, alice, bob, as_user, by):
    client = as_user(alice)

    def queries(grouped: str) -> int:
        cache.clear()
        with CaptureQueriesContext(connection) as captured:
            assert client.get(f"{INBOX}?show={which}{grouped}").status_code == 200
        return len(captured)

    def more(start: int, count: int) -> None:
        now = timezone.now()
        for number in range(start, start + count):
            alert = trouble(f"m-{number}", owner=bob, signals=2)
            if which == "closed":
                clear_event(team=acme, cause=alert.cause, subject=alert.subject, now=now)
            if which == "snoozed":
                snooze_alert(actor=by(bob), alert=alert, now=now, until=None)

    groupings = ["", "&by=owner", "&by=provider"]
    more(0, 1)
    queries("")
    one = [queries(grouped) for grouped in groupings]
    more(1, PAGE_SIZE + 20)
    assert [queries(grouped) for grouped in groupings] == one


def test_where_the_session_has_ended_the_whole_page_goes_to_sign_in(acme, client):
    page = "http://testserver/t/acme/alerts/?show=open"
    answer = client.get(INBOX, headers={"HX-Request": "true", "HX-Current-URL": page})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["HX-Redirect"] == "/login/?next=/t/acme/alerts/%3Fshow%3Dopen"
    assert client.get(INBOX).url == "/login/?next=/t/acme/alerts/"


def test_whoever_acknowledged_it_by_a_link_is_called_so(trouble, alice, as_user):
    alert = trouble("train-01")
    acknowledge_alert(actor=Actor(None, "link sent to ops", "link"), alert=alert, now=timezone.now())
    assert "Acknowledged by link sent to ops" in as_user(alice).get(INBOX).text


def test_a_machine_of_an_outage_is_at_stake_once(trouble, acme, account, alice, as_user):
    lost = trouble("train-01", "gpu.lost", price=10)
    other = trouble("train-02", "gpu.lost", price=4)
    for number, machine in enumerate((lost.instance, None)):
        raise_event(
            team=acme, cause="provider.outage", subject=f"account:{account.pk}", severity="urgent", account=account,
            signal="agent_silent", detail=f"m{number}", scope=f"instance:{machine.pk}" if machine else "instance:999",
            price_per_hour=Decimal(10), currency="USD", now=timezone.now(),
        )  # fmt: skip
    assert other.price_per_hour == 4
    assert "$24.00/h at stake" in as_user(alice).get(INBOX).text
