"""Prepaid money: read and typed, how long it lasts, what was paid in, and the alert before it ends."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.exceptions import ValidationError

from fleet.alerts.models import Alert, AlertEvent
from fleet.alerts.words import title_of, why_of
from fleet.costs.balances.judging import judge_balances, judge_team, note_idle
from fleet.costs.balances.keeping import prune_balances, set_limits, type_balance
from fleet.costs.balances.models import BalanceReading, TopUp
from fleet.costs.balances.shown import runways_of
from fleet.costs.book.models import LedgerInterval, LedgerMeter
from fleet.costs.spend.models import ExchangeRate
from fleet.inventory.models import ProviderAccount
from fleet.inventory.provider_word.models import ProviderReading
from fleet.providers.base import Billing, InstanceState
from fleet.providers.errors import Unavailable
from fleet.teams.audit import Actor
from fleet.telemetry.models import GpuLatest
from tests.fleet.costs.balances.conftest import NOON

HOUR = timedelta(hours=1)


@pytest.fixture
def by_bob(bob):
    return Actor(bob, "bob", "page")


def left_of(runway):
    return runway.lasts and runway.lasts.left


def alerts():
    return Alert.objects.filter(cause="account.balance", closed_at=None)


class TestReading:
    def test_it_is_asked_every_ten_minutes(self, read, lab):
        assert read()
        row = BalanceReading.objects.get()
        assert [row.account, row.amount, row.currency, row.at, row.source] == [lab, 100, "USD", NOON, "provider"]
        assert timedelta(minutes=10) <= ProviderReading.objects.get().next_at - NOON <= timedelta(minutes=11)

    def test_a_failure_backs_off_and_is_shown(self, read, purse, lab, as_user, vera):
        read()
        purse.left = Unavailable("502 from the balance service")
        assert not read(11)
        reading = ProviderReading.objects.get()
        assert (reading.failures, BalanceReading.objects.count()) == (1, 1)
        page = as_user(vera).get("/t/acme/costs/balances/").content.decode()
        assert "It could not be read at" in page
        assert "502 from the balance service" in page

    @pytest.mark.parametrize("left", ["NaN", "Infinity", "1e20"])
    def test_what_no_balance_can_be_is_not_kept(self, read, purse, left):
        purse.left = left
        assert read()
        assert not BalanceReading.objects.exists()

    def test_old_ones_go_and_the_newest_stays(self, told, lab):
        told(5, at=NOON - timedelta(days=200))
        told(4, at=NOON - timedelta(days=100))
        assert prune_balances(now=NOON) == 1
        assert BalanceReading.objects.get().amount == 4


class TestTopUps:
    def test_a_balance_that_rose_was_paid_in(self, read, purse):
        read()
        purse.left = "80"
        read(11)
        purse.left = "180"
        read(22)
        row = TopUp.objects.get()
        assert [row.before, row.amount, row.at] == [80, 100, NOON + timedelta(minutes=22)]

    def test_it_clears_the_alert_at_once(self, read, purse, rent, acme):
        rent(price="10")
        read()
        judge_team(team=acme, now=NOON)
        assert alerts().get().severity == "urgent"
        purse.left = "5000"
        read(11)
        assert not alerts().exists()

    def test_the_page_has_them(self, read, purse, as_user, vera):
        read()
        purse.left = "180.50"
        read(11)
        assert "$80.50" in as_user(vera).get("/t/acme/costs/balances/").content.decode()


class TestRunways:
    def test_all_machines_and_disks_of_stopped_ones_count(self, told, rent, acme):
        rent("a", "2.50")
        rent("b", "9", state=InstanceState.STOPPED, billing=Billing.STORAGE, storage_price_per_hour="0.50")
        rent("c", "9", billing=Billing.NONE)
        rent("d", "9", gone_at=NOON)
        told(120, at=NOON - HOUR)
        (one,) = runways_of(acme, NOON)
        assert [one.burn_per_hour, left_of(one), one.hours_left] == [3, 117, 39]
        assert (one.ends_at, one.is_at_most) == (NOON + 39 * HOUR, False)

    def test_unknown_prices_are_said_and_not_zero(self, told, rent, acme, as_user, vera):
        rent("a", "2.50")
        rent("b", None)
        told(50)
        (one,) = runways_of(acme, NOON)
        assert [one.hours_left, one.unpriced, one.is_at_most] == [20, 1, True]
        page = as_user(vera).get("/t/acme/costs/balances/").content.decode()
        assert "at most 20 h" in page
        assert "the price of 1 machine is not known" in page

    def test_another_currency_is_converted_by_a_dated_rate_or_said(self, told, rent, acme):
        rent("a", "7", currency="CNY")
        told(50)
        (one,) = runways_of(acme, NOON)
        assert [one.hours_left, one.others] == [None, {"CNY": Decimal(7)}]
        ExchangeRate.objects.create(team=acme, currency="CNY", into="USD", day=date(2026, 11, 1), rate="0.20")
        (one,) = runways_of(acme, NOON)
        assert (one.burn_per_hour, one.others) == (Decimal("1.4"), {})

    def test_without_what_does_nothing(self, told, rent, acme):
        busy, idle = rent("busy", "3"), rent("idle", "1")
        for machine, percent in ((busy, 97.0), (idle, 0.0)):
            gpu = machine.gpus.create(uuid=machine.name, index=0, name="H100")
            GpuLatest.objects.create(
                gpu=gpu, sampled_at=NOON, received_at=NOON, utilization_percent=percent, memory_used_bytes=0, memory_total_bytes=2**36, power_watts=60 + 6 * percent,
            )  # fmt: skip
        told(120)
        note_idle([busy.account], now=NOON)
        (one,) = runways_of(acme, NOON)
        assert [one.hours_left, one.idle_per_hour, one.without_idle_hours] == [30, 1, 40]

    def test_what_was_never_read_is_unknown(self, purse, lab, rent, acme):
        rent()
        (one,) = runways_of(acme, NOON)
        assert (one.lasts, one.severity()) == (None, "")

    def test_the_one_that_ends_first_is_first(self, told, rent, acme, purse, lab):
        other = ProviderAccount.objects.create(team=acme, kind="scripted", name="Other")
        rent()
        rent("b", "50", account=other)
        told(100)
        told(100, account=other)
        assert [one.account.name for one in runways_of(acme, NOON)] == ["Other", "Lab"]

    def test_another_team_has_its_own(self, told, rival):
        told(5)
        assert runways_of(rival, NOON) == []


class TestTyped:
    @pytest.fixture
    def silent(self, account):
        return account

    def test_it_is_counted_down_by_the_ledger(self, silent, by_bob, acme, make_instance):
        machine = make_instance(price_per_hour="4", currency="USD")
        meter = LedgerMeter.objects.create(team=acme, account=silent, instance=machine, kind="compute")
        LedgerInterval.objects.create(
            meter=meter, period=(NOON - 10 * HOUR, None), unit="hour", unit_price=4, currency="USD", price_source="typed", seen_at=NOON, start_source="typed",
        )  # fmt: skip
        type_balance(actor=by_bob, account=silent, amount=Decimal(100), currency="USD", at=NOON - 5 * HOUR, now=NOON)
        (one,) = runways_of(acme, NOON)
        assert [one.balance, left_of(one), one.hours_left] == [100, 80, 20]
        assert (one.source, one.is_readable) == ("typed", False)

    @pytest.mark.parametrize(
        ("field", "values"),
        [
            ("amount", {"amount": Decimal("NaN")}),
            ("currency", {"currency": "$"}),
            ("at", {"at": NOON + HOUR}),
            ("at", {"at": datetime(2020, 1, 1, tzinfo=UTC)}),
        ],
    )
    def test_mistakes_name_their_field(self, silent, by_bob, field, values):
        asked = {"amount": Decimal(5), "currency": "USD", "at": NOON, **values}
        with pytest.raises(ValidationError) as refusal:
            type_balance(actor=by_bob, account=silent, now=NOON, **asked)
        assert list(refusal.value.message_dict) == [field]

    def test_not_for_one_that_is_read(self, purse, lab, by_bob):
        with pytest.raises(ValidationError, match="read from its provider"):
            type_balance(actor=by_bob, account=lab, amount=Decimal(5), currency="USD", at=NOON, now=NOON)

    def test_typing_more_is_a_payment(self, silent, by_bob):
        for hours, amount in ((0, 5), (1, 105)):
            at = NOON + hours * HOUR
            type_balance(actor=by_bob, account=silent, amount=Decimal(amount), currency="USD", at=at, now=at)
        assert [TopUp.objects.get().amount, TopUp.objects.get().source] == [100, "typed"]


class TestAlerts:
    @pytest.mark.parametrize(
        ("left", "severity"), [("491", None), ("480", "warning"), ("120", "urgent"), ("0", "urgent")]
    )
    def test_hours_before_it_ends(self, told, rent, purse, acme, left, severity):
        rent(price="10")
        told(left)
        judge_balances(now=NOON)
        assert list(alerts().values_list("severity", flat=True)) == ([severity] if severity else [])

    def test_it_says_how_long_and_what_happens_then(self, told, rent, purse, acme):
        rent(price="10")
        told(480)
        judge_balances(now=NOON)
        alert = alerts().select_related("account").get()
        assert title_of(alert) == "Lab runs out of credit"
        assert "$480.00 left, at $10.00 an hour for 2 d, until 2026-12-02 12:00; at zero machines are stopped" in why_of(alert)  # fmt: skip
        assert alert.price_per_hour == 10

    def test_one_message_until_it_gets_worse(self, told, rent, purse, acme):
        rent(price="10")
        told(480)
        for hours in range(3):
            judge_balances(now=NOON + hours * HOUR)
        assert list(AlertEvent.objects.values_list("kind", flat=True)) == ["opened"]
        judge_balances(now=NOON + 37 * HOUR)
        assert alerts().get().severity == "urgent"

    def test_limits_of_the_team_and_of_one_account(self, told, rent, purse, acme, lab, by_bob):
        rent(price="10")
        told(700)
        set_limits(actor=by_bob, team=acme, account=None, warning_hours=72, urgent_hours=24, now=NOON)
        judge_balances(now=NOON)
        assert alerts().get().severity == "warning"
        set_limits(actor=by_bob, team=acme, account=lab, warning_hours=10, urgent_hours=1, now=NOON)
        judge_balances(now=NOON)
        assert not alerts().exists()

    def test_what_cannot_be_told_leaves_what_stands(self, told, rent, purse, acme):
        rent(price="10")
        told(100)
        judge_balances(now=NOON)
        BalanceReading.objects.all().delete()
        judge_balances(now=NOON + HOUR)
        assert alerts().exists()

    def test_a_disconnected_account_is_none_any_more(self, told, rent, purse, acme, lab):
        rent(price="10")
        told(100)
        judge_balances(now=NOON)
        ProviderAccount.objects.filter(pk=lab.pk).update(disconnected_at=NOON)
        judge_team(team=acme, now=NOON)
        assert not alerts().exists()


class TestDoors:
    TYPED = {"amount": "5", "currency": "usd", "at": "2026-11-30T11:00"}

    def test_operators_type_and_set_limits_on_the_page(self, account, clock, as_user, bob, vera, acme):
        address = "/t/acme/costs/balances/"
        assert as_user(vera).post(f"{address}type/", self.TYPED).status_code == 403
        assert as_user(bob).post(f"{address}type/", {**self.TYPED, "account": account.pk}).status_code == 302
        assert [runways_of(acme, NOON)[0].balance, runways_of(acme, NOON)[0].currency] == [5, "USD"]
        wrong = as_user(bob).post(f"{address}limits/", {"warning_hours": "5", "urgent_hours": "9"})
        assert (wrong.status_code, "choose fewer hours" in wrong.content.decode()) == (422, True)
        assert as_user(bob).post(f"{address}limits/", {"warning_hours": "9", "urgent_hours": "5"}).status_code == 302
        assert runways_of(acme, NOON)[0].limits.warning_hours == 9

    def test_another_team_sees_nothing(self, told, as_user, charlie):
        told(5)
        assert as_user(charlie).get("/t/acme/costs/balances/").status_code == 404
        assert as_user(charlie).get("/api/v1/balances/").json()["results"] == []

    def test_over_the_api(self, account, clock, as_user, bob, vera):
        send = lambda user, rest, body: as_user(user).post(f"/api/v1/balances/{rest}", body, content_type="application/json")  # noqa: E731  # fmt: skip
        assert send(vera, "", {"account": account.pk, "amount": "250"}).status_code == 403
        assert send(bob, "", {"account": account.pk, "amount": "250"}).status_code == 201
        limits = send(bob, "limits/", {"account": account.pk, "warning_hours": 72, "urgent_hours": 24}).json()[
            "results"
        ]
        shown = as_user(vera).get("/api/v1/balances/runways/").json()["results"]
        assert limits == shown
        assert [shown[0][name] for name in ("left", "hours_left", "warning_hours")] == ["250.00", None, 72]
        wrong = send(bob, "", {"account": account.pk, "amount": "250", "at": "2030-01-01T00:00:00Z"})
        assert (wrong.status_code, wrong.json()["field"]) == (400, "at")

    def test_the_page_of_costs_has_them(self, told, rent, purse, as_user, vera):
        rent(price="10")
        told(480)
        page = as_user(vera).get("/t/acme/costs/").content.decode()
        assert "Lab has credit for 48 hours" in page
        assert "48 h, until Wed 2 Dec 12:00" in page
