"""Cleanup: what costs money and nobody may know of, on its page and over the API."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.models import Operation
from fleet.pages.cleanup_lines import Kind, cleanup_lines, total
from fleet.providers.base import Billing, InstanceState
from fleet.telemetry.models import Agent

PAGE, API = "/t/acme/cleanup/", "/api/v1/cleanup/"
NOW = timezone.now()
OFF = {"state": InstanceState.STOPPED, "billing": Billing.STORAGE}


@pytest.fixture
def cloud(acme) -> ProviderAccount:
    return ProviderAccount.objects.create(team=acme, kind="aws", name="Cloud", monitor_only=False)


@pytest.fixture
def machine(make_instance, cloud):
    """machine("m1", …) at the cloud, at 2 an hour and 0.10 for its disks."""

    def make(name: str, **fields):
        prices = {"price_per_hour": Decimal(2), "storage_price_per_hour": Decimal("0.1")}
        return make_instance(name=name, **{"account": cloud, **prices, **fields})

    return make


@pytest.fixture
def asked(acme, cloud):
    def make(instance, kind="stop", *, minutes=60, **fields):
        at = NOW - timedelta(minutes=minutes)
        return Operation.objects.create(
            team=acme, account=cloud, instance=instance, kind=kind, token=f"rr-{kind}-{instance.pk}-{minutes}",
            requested_at=at, requested_label="bob", **fields,
        )  # fmt: skip

    return make


def agent_of(instance, *, heard: timedelta, **fields):
    return Agent.objects.create(
        instance=instance, token_hash=f"h{instance.pk}", prefix="rra_", heartbeat_at=NOW - heard, **fields
    )


def lines(team):
    return {line.instance.name: line for line in cleanup_lines(team_ids=[team.pk], now=NOW)}


def test_a_healthy_fleet_has_nothing_to_clean_up(acme, machine, alice, as_user):
    machine("runs")
    machine("off-and-free", state=InstanceState.STOPPED, billing=Billing.NONE)
    assert lines(acme) == {}
    assert "Nothing to clean up" in as_user(alice).get(PAGE).text


def test_what_nobody_registered(acme, machine, alice, as_user):
    machine("stray", managed=False, region="eu-1")
    line = lines(acme)["stray"]
    assert (line.kind, line.per_month) == (Kind.UNMANAGED, Decimal(1460))
    text = as_user(alice).get(PAGE).text
    for said in (
        "At the provider, and not ours",
        "Cloud lists it: running, billed in full",
        "$1,460.00",
        "Register it",
    ):
        assert said in text


def test_off_and_charged_says_for_what(acme, machine, alice, as_user):
    machine("off", **OFF)
    assert lines(acme)["off"].per_month == Decimal(73)
    text = as_user(alice).get(PAGE).text
    assert "only disks billed: boot disk, data disk, public address" in text
    assert "/terminate/" in text


@pytest.mark.parametrize(
    ("kind", "billing", "price", "per_month"),
    [
        # Charged in full while it is off, whatever "stopped" sounds like.
        ("digitalocean", Billing.FULL, Decimal(2), Decimal(1460)),
        ("digitalocean", Billing.UNKNOWN, Decimal(2), Decimal(1460)),
        ("aws", Billing.UNKNOWN, Decimal(2), None),
        ("lambda", Billing.FULL, None, None),
        # A kind that this installation knows no more.
        ("forgotten", Billing.FULL, Decimal(2), Decimal(1460)),
    ],
)
def test_what_an_off_machine_costs(acme, machine, cloud, kind, billing, price, per_month):
    ProviderAccount.objects.filter(pk=cloud.pk).update(kind=kind)
    machine("off", state=InstanceState.STOPPED, billing=billing, price_per_hour=price)
    assert lines(acme)["off"].per_month == per_month


def test_a_price_that_is_not_known_is_said_and_not_nothing(acme, machine, alice, as_user):
    machine("off", **{**OFF, "storage_price_per_hour": None})
    found = total(lines(acme).values())
    assert (found.machines, found.unpriced, found.per_month) == (1, 1, {})
    text = as_user(alice).get(PAGE).text
    assert "1 of unknown cost" in text
    assert "not known" in text


def test_ghosts(acme, machine, cloud, alice, as_user):
    machine("doubted", doubted_since=NOW - timedelta(hours=1), billing=Billing.UNKNOWN)
    gone = {"gone_at": NOW - timedelta(hours=2), "state": InstanceState.TERMINATED, "billing": Billing.NONE}
    agent_of(machine("speaks", **gone), heard=timedelta(minutes=1))
    agent_of(machine("last-words", **gone), heard=timedelta(hours=2) - timedelta(minutes=5))
    agent_of(machine("revoked", **gone), heard=timedelta(minutes=1), revoked_at=NOW)
    found = lines(acme)
    assert {name: line.kind for name, line in found.items()} == {"doubted": Kind.GHOST, "speaks": Kind.GHOST}
    # The last that was known of what they cost.
    assert {line.per_month for line in found.values()} == {Decimal(1460)}
    text = as_user(alice).get(PAGE).text
    assert "leaves it out together with most others" in text
    assert "does not list it any more; its agent reported " in text


def test_what_no_reading_shows(acme, machine, asked, alice, as_user):
    asked(machine("lies"), price_per_hour=Decimal(2), seen_state="running", seen_billing="full")
    asked(machine("only-just"), minutes=0)
    asked(machine("failed"), "terminate", state="failed", failed_at=NOW, error_kind="auth_failed")
    again = machine("again")
    asked(again, minutes=90, state="failed", failed_at=NOW)
    asked(again, minutes=30, state="proved", proved_at=NOW)
    assert set(lines(acme)) == {"lies", "failed"}
    text = as_user(alice).get(PAGE).text
    assert "stop, asked for by bob; the provider shows running, billed in full" in text
    assert "the provider does not accept the key" in text


def test_each_machine_stands_once_and_currencies_stay_apart(acme, machine, asked):
    asked(machine("all-at-once", managed=False, **OFF))
    machine("euro", managed=False, currency="EUR")
    found = lines(acme)
    assert {name: line.kind for name, line in found.items()} == {"all-at-once": Kind.UNPROVED, "euro": Kind.UNMANAGED}
    assert total(found.values()).per_month == {"USD": Decimal(73), "EUR": Decimal(1460)}


def test_of_another_team_nobody_sees_anything(acme, machine, charlie, as_user):
    machine("stray", managed=False)
    assert as_user(charlie).get(PAGE).status_code == 404
    assert as_user(charlie).get(API).json()["results"] == []


def test_narrowed_by_section_and_account(acme, machine, account, alice, as_user):
    machine("stray", managed=False)
    machine("off", **OFF)
    machine("elsewhere", account=account, managed=False)
    client = as_user(alice)
    text = client.get(f"{PAGE}?kind=stopped").text
    assert ">off<" in text
    assert ">stray<" not in text
    assert ">elsewhere<" not in client.get(f"{PAGE}?account={machine('x').account_id}").text
    assert client.get(f"{PAGE}?kind=nonsense&account=x&page=-1").status_code == 200
    rows = client.get(f"{API}?kind=unmanaged").json()
    assert [row["name"] for row in rows["results"]] == ["stray", "elsewhere"]
    assert rows["per_month"] == [{"currency": "USD", "amount": "2920.00"}]
    assert [row["name"] for row in client.get(f"{API}?limit=1&offset=1&kind=unmanaged").json()["results"]] == [
        "elsewhere"
    ]
    assert client.get(f"{API}?kind=nonsense").status_code == 400


class TestSayingThatTheyAreGone:
    @pytest.fixture
    def lost(self, machine):
        return machine("lost", doubted_since=NOW)

    def test_on_the_page(self, lost, bob, as_user):
        client = as_user(bob)
        assert "The chosen machines are gone" in client.get(PAGE).text
        client.post(f"{PAGE}gone/", {"instance": lost.pk, "reason": "deleted in the console"})
        assert Instance.objects.get(pk=lost.pk).state == "terminated"
        assert "1 machine counts as gone." in client.get(PAGE).text

    @pytest.mark.parametrize("sent", [{"reason": "seen"}, {"reason": ""}, {"instance": "x", "reason": "seen"}])
    def test_what_is_missing_is_said_and_nothing_is_lost(self, lost, bob, as_user, sent):
        answer = as_user(bob).post(f"{PAGE}gone/", {"instance": lost.pk, **sent} if not sent["reason"] else sent)
        assert answer.status_code == 422
        assert "errmsg" in answer.text
        assert ("checked" in answer.text) is (not sent["reason"])
        assert Instance.objects.get(pk=lost.pk).gone_at is None

    def test_only_of_what_is_in_doubt(self, machine, bob, as_user):
        listed = machine("listed", managed=False)
        assert as_user(bob).post(f"{PAGE}gone/", {"instance": listed.pk, "reason": "x"}).status_code == 422
        answer = as_user(bob).post(API, {"instances": [listed.pk], "reason": "x"}, "application/json")
        assert [row["name"] for row in answer.json()["results"]] == ["listed"]

    def test_a_viewer_does_not(self, lost, vera, as_user):
        client = as_user(vera)
        assert "The chosen machines are gone" not in client.get(PAGE).text
        assert client.post(f"{PAGE}gone/", {"instance": lost.pk, "reason": "x"}).status_code == 403


def test_five_thousand_machines_cost_as_many_queries_as_one(acme, machine, asked, alice, as_user):
    accounts = ProviderAccount.objects.bulk_create(
        ProviderAccount(team=acme, kind="aws", name=f"Cloud {number}") for number in range(12)
    )
    agent_of(machine("g", gone_at=NOW - timedelta(hours=2)), heard=timedelta(minutes=1))
    asked(machine("lies"))
    machine("stray", managed=False)
    client = as_user(alice)
    client.get(PAGE)

    def queries(address: str) -> int:
        cache.clear()
        with CaptureQueriesContext(connection) as captured:
            assert client.get(address).status_code == 200
        return len(captured)

    before = queries(PAGE), queries(API)
    Instance.objects.bulk_create(
        Instance(
            team=acme, account=accounts[number % 12], external_id=f"i-{number}", name=f"m{number}", currency="USD",
            managed=number % 3 > 0, price_per_hour=Decimal(1), **OFF,
        )
        for number in range(5_000)
    )  # fmt: skip
    for number in range(3):
        asked(machine(f"lies-{number}"))
    assert (queries(PAGE), queries(API)) == before
