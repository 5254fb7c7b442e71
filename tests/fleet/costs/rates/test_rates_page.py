"""The page of exchange rates: typed, imported, removed, by admins, with what is wrong told at its place."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
import time_machine
from django.core.files.uploadedfile import SimpleUploadedFile

from fleet.costs.spend.models import ExchangeRate
from fleet.costs.spend.spend import spend
from fleet.states import GpuState
from fleet.teams.models import AuditEntry
from tests.fleet.costs.seeding import spend_on

PAGE = "/t/acme/costs/rates/"
TYPED = {"currency": "CNY", "rate": "0.1389", "into": "USD", "day": "2026-11-02", "source": "the bank's table"}
FILE = "currency,into,day,rate,source\nCNY,USD,2026-11-01,0.1388,table\nEUR,USD,2026-11-01,1.16,\n"


@pytest.fixture(autouse=True)
def november():
    with time_machine.travel("2026-11-30T10:00:00Z", tick=False):
        yield


@pytest.fixture
def admin(alice, as_user):
    return as_user(alice)


def row(team, **fields: object) -> ExchangeRate:
    values = {"currency": "CNY", "into": "USD", "day": date(2026, 11, 2), "rate": Decimal("0.14"), **fields}
    return ExchangeRate.objects.create(team=team, **values)


class TestTyping:
    def test_a_rate_is_kept_and_counts_at_once(self, acme, account, admin):
        spend_on(acme, date(2026, 11, 5), "100", account=account, currency="CNY", state=GpuState.UNKNOWN)
        assert "No rate leads from CNY to USD." in admin.get(PAGE).content.decode()
        answer = admin.post(f"{PAGE}set/", TYPED, follow=True)
        assert "1 CNY = 0.1389 USD" in answer.content.decode()
        assert "No rate leads" not in answer.content.decode()
        assert spend(team=acme, start=date(2026, 11, 1), end=date(2026, 12, 1)).all.total == Decimal("13.89")
        entry = AuditEntry.objects.get()
        assert (entry.action, entry.new) == ("exchange_rate.set", {"rate": "1 CNY = 0.1389 USD, 2026-11-02"})

    def test_the_rate_of_the_same_day_is_replaced(self, acme, admin):
        row(acme)
        admin.post(f"{PAGE}set/", TYPED)
        assert ExchangeRate.objects.get().rate == Decimal("0.1389")
        assert AuditEntry.objects.get().old == {"rate": "1 CNY = 0.14 USD, 2026-11-02"}

    @pytest.mark.parametrize(
        ("wrong", "says"),
        [
            ({"currency": "yuan"}, "“yuan” is no currency."),
            ({"into": "CNY"}, "A currency is always 1 of itself."),
            ({"rate": "0"}, "“0” is no rate."),
            ({"rate": "0,14"}, "“0,14” is no rate."),
            ({"rate": "nan"}, "“nan” is no rate."),
            ({"day": "2.11.2026"}, "“2.11.2026” is no day."),
            ({"day": "2026-12-02"}, "This day is still to come."),
            ({"rate": ""}, "This field is required."),
        ],
    )
    def test_what_is_wrong_is_told_and_nothing_is_lost(self, admin, wrong, says):
        answer = admin.post(f"{PAGE}set/", TYPED | wrong)
        assert answer.status_code == 422
        assert says in answer.content.decode()
        assert "the bank&#x27;s table" in answer.content.decode()
        assert not ExchangeRate.objects.exists()


class TestImporting:
    def test_a_file_is_imported_whole(self, acme, admin):
        row(acme, day=date(2026, 11, 1))
        upload = SimpleUploadedFile("november.csv", FILE.encode("utf-8-sig"))
        assert "Imported 2 rates." in admin.post(f"{PAGE}import/", {"file": upload}, follow=True).content.decode()
        rows = ExchangeRate.objects.order_by("currency").values_list("currency", "rate", "source")
        assert list(rows) == [("CNY", Decimal("0.1388"), "table"), ("EUR", Decimal("1.16"), "november.csv")]
        entry = AuditEntry.objects.get()
        assert (entry.action, entry.new) == ("exchange_rate.import", {"rates": 2, "pairs": "CNY/USD, EUR/USD"})

    def test_every_wrong_cell_is_told_by_line_and_column_and_nothing_is_imported(self, admin):
        text = (
            "currency,into,day,rate,source\n"
            "CNY,USD,2026-11-01,0.1388,ok\n"
            "CNY,USD,2026-11-31,0.1388,\n"
            "CNY,US,2026-11-02,0.1388,\n"
            "CNY,USD,2026-11-02,-1,\n"
            "CNY,USD,2026-11-01,0.2,\n"
            "CNY,USD,2026-11-03,0.2,a,b\n"
        )
        answer = admin.post(f"{PAGE}import/", {"csv": text})
        assert answer.status_code == 422
        told = [(fault.line, fault.column) for fault in answer.context["faults"]]
        assert told == [(3, "day"), (4, "into"), (5, "rate"), (6, "day"), (7, "")]
        assert "Line 2 has a rate of this day, too." in answer.content.decode()
        assert "2026-11-31" in answer.context["asked"]["csv"].value(), "the text is still there"
        assert not ExchangeRate.objects.exists()

    @pytest.mark.parametrize(
        ("given", "says"),
        [
            ({}, "Choose a file, or paste its text."),
            ({"csv": "currency,day,rate\n"}, "Missing: into."),
            ({"csv": "currency,into,day,rate\n"}, "The file has no rate."),
            ({"csv": "x" * 2_000_001}, "The file is larger than 2 MB."),
            ({"file": SimpleUploadedFile("a.csv", b"\xff\xfe\x00")}, "The file is no text in UTF-8."),
        ],
    )
    def test_files_that_are_none(self, admin, given, says):
        answer = admin.post(f"{PAGE}import/", given)
        assert answer.status_code == 422
        assert says in answer.content.decode()

    def test_hostile_texts_are_shown_as_text(self, acme, admin):
        admin.post(
            f"{PAGE}import/", {"csv": "currency,into,day,rate,source\nCNY,USD,2026-11-01,1,<script>alert(1)</script>\n"}
        )
        assert "<script>alert(1)" not in admin.get(PAGE).content.decode()
        answer = admin.post(
            f"{PAGE}import/", {"csv": "currency,into,day,rate\n<script>alert(1)</script>,USD,2026-11-01,1\n"}
        )
        assert "<script>alert(1)" not in answer.content.decode()


class TestWhoMay:
    def test_only_admins_change(self, acme, admin, bob, vera, charlie, as_user):
        one = row(acme)
        for user in (bob, vera):
            browser = as_user(user)
            assert "1 CNY = 0.14 USD" in browser.get(PAGE).content.decode()
            assert "Set a rate" not in browser.get(PAGE).content.decode()
            assert browser.post(f"{PAGE}set/", TYPED).status_code == 403
            assert browser.post(f"{PAGE}import/", {"csv": FILE}).status_code == 403
            assert browser.post(f"{PAGE}{one.pk}/remove/").status_code == 403
        assert as_user(charlie).get(PAGE).status_code == 404

    def test_a_rate_is_removed_with_a_record_of_it(self, acme, rival, admin):
        one, other = row(acme), row(rival)
        assert admin.post(f"{PAGE}{other.pk}/remove/").status_code == 404
        admin.post(f"{PAGE}{one.pk}/remove/")
        assert list(ExchangeRate.objects.all()) == [other]
        entry = AuditEntry.objects.get()
        assert (entry.action, entry.old) == ("exchange_rate.remove", {"rate": "1 CNY = 0.14 USD, 2026-11-02"})

    def test_the_number_of_queries_does_not_grow(self, acme, admin, django_assert_max_num_queries):
        for number in range(1, 29):
            row(acme, day=date(2026, 10, number))
        with django_assert_max_num_queries(20):
            admin.get(PAGE)
