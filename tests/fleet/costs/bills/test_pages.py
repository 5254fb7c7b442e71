"""The pages of bills: a file from choice to comparison, what each role may, and what another team sees."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
import time_machine
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from fleet.costs.bills.adjusting import accept_explained
from fleet.costs.bills.comparing import compare_month
from fleet.costs.bills.models import Bill, BillLine, BillUpload
from fleet.costs.bills.panel import reconcile_panel
from fleet.costs.bills.tasks import prune_bill_uploads
from fleet.costs.month import Month
from fleet.costs.spend.models import Adjustment
from fleet.inventory.provider_word.models import ProviderReading
from fleet.teams.audit import Actor
from tests.fleet.costs.bills.conftest import DAY, DECEMBER, NOVEMBER, NOW, charge

HEAD = b"amount,start,machine,kind,currency\n"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def month(pods, make_instance, write, take):
    machine = make_instance(name="priced", account=pods, external_id="priced")
    write(machine, "compute", NOVEMBER, NOVEMBER + 2 * DAY, 2)
    take([charge("priced", 1, 60), charge("priced", 2, 48), charge(HOSTILE, 3, 20, description=HOSTILE)])
    return compare_month(account=pods, month=date(2026, 11, 1), now=NOW)[0]


def send(client, pods, content, **more):
    file = SimpleUploadedFile("november.csv", content, "text/csv")
    return client.post(
        reverse("bill_import", args=["acme"]), {"account": pods.pk, "file": file, "time_zone": "UTC", **more}
    )


@pytest.fixture
def browser(bob, as_user):
    return as_user(bob)


def test_a_file_is_shown_before_it_is_taken(browser, pods, bob):
    seen = send(
        browser, pods, HEAD + b"5,2026-11-01,pod-1,compute,USD\n6,2026-11-02,pod-1,compute,USD\n", complete="on"
    )
    assert seen.status_code == 302
    page = browser.get(seen.url)
    assert "2 lines, $11.00" in page.content.decode()
    assert not BillLine.objects.exists()
    done = browser.post(seen.url, {"step": "take"}, follow=True)
    assert "2 new lines" in done.content.decode()
    bill = Bill.objects.get()
    assert (bill.source, bill.file_name, bill.imported_by, bill.line_count) == ("csv", "november.csv", bob, 2)
    assert not BillUpload.objects.exists()


def test_a_second_click_takes_nothing_twice(browser, pods):
    seen = send(browser, pods, HEAD + b"5,2026-11-01,pod-1,compute,USD\n")
    browser.post(seen.url, {"step": "take"})
    assert browser.post(seen.url, {"step": "take"}).status_code == 404
    assert BillLine.objects.count() == 1


def test_a_fault_is_told_with_line_and_column_and_nothing_can_be_taken(browser, pods):
    seen = send(browser, pods, HEAD + b"5,2026-11-01,pod-1,compute,USD\nfree,2026-11-02,pod-1,compute,USD\n")
    page = browser.get(seen.url)
    assert page.status_code == 422
    text = page.content.decode()
    assert ">3</td>" in text
    assert ">amount</td>" in text
    assert 'value="take"' not in text
    browser.post(seen.url, {"step": "take"})
    assert not BillLine.objects.exists()


def test_columns_are_assigned_where_nobody_knows_them(browser, pods):
    seen = send(browser, pods, b"Kosten,Tag\n5,2026-11-01\n")
    assert "Which column is what?" in browser.get(seen.url).content.decode()
    twice = browser.post(seen.url, {"step": "assign", "amount": "Kosten", "start": "Kosten"})
    assert twice.status_code == 422
    browser.post(seen.url, {"step": "assign", "amount": "Kosten", "start": "Tag"})
    browser.post(seen.url, {"step": "take"})
    assert BillLine.objects.get().amount == 5


def test_a_file_that_is_too_large_is_refused_at_its_field(browser, pods):
    answer = send(browser, pods, b"x" * 8_000_001)
    assert answer.status_code == 422
    assert "larger than 8 MB" in answer.content.decode()
    assert not BillUpload.objects.exists()


def test_another_teams_account_cannot_be_chosen(charlie, as_user, pods):
    answer = as_user(charlie).post(
        reverse("bill_import", args=["rival"]),
        {"account": pods.pk, "file": SimpleUploadedFile("x.csv", HEAD), "time_zone": "UTC"},
    )
    assert answer.status_code == 422
    assert not BillUpload.objects.exists()


def test_files_that_nobody_takes_are_dropped_after_a_day(browser, pods):
    with time_machine.travel(NOW, tick=False):
        send(browser, pods, HEAD)
    with time_machine.travel(NOW + timedelta(hours=23), tick=False):
        assert prune_bill_uploads() == 0
    with time_machine.travel(NOW + timedelta(hours=25), tick=False):
        assert prune_bill_uploads() == 1


def test_a_month_says_the_finding_and_what_differs(vera, as_user, month):
    text = as_user(vera).get(reverse("bill_month", args=["acme", month.pk])).content.decode()
    assert "RunPod billed $32.00 more for November than counted here; $20.00 is left to explain" in text
    assert "Billed at 2.5 an hour, counted at 2." in text
    assert "Count as billed" not in text


def test_what_a_provider_says_is_escaped(browser, month):
    text = browser.get(reverse("bill_month", args=["acme", month.pk])).content.decode()
    assert HOSTILE not in text
    assert "&lt;img" in text


def test_lines_are_counted_as_billed_and_taken_back(browser, month):
    address = reverse("bill_accept", args=["acme", month.pk])
    answer = browser.post(address, follow=True)
    assert "1 line counts as billed." in answer.content.decode()
    made = Adjustment.objects.get()
    assert made.amount == 12
    browser.post(reverse("adjustment_reverse", args=["acme", made.pk]), {"reason": "a mistake"})
    assert Adjustment.objects.get(reverses=made).reason == "a mistake"
    line = month.lines.get(instance=None)
    browser.post(address, {"line": [line.pk]})
    assert Adjustment.objects.get(amount=20).instance is None


def test_a_viewer_reads_and_changes_nothing(vera, as_user, month, pods, bob):
    (made,) = accept_explained(actor=Actor(bob, "bob", "page"), reconciliation=month, now=NOW)
    viewer = as_user(vera)
    assert viewer.get(reverse("bills", args=["acme"])).status_code == 200
    for name, key in [("bill_accept", month.pk), ("adjustment_reverse", made.pk), ("bill_ask", pods.pk)]:
        assert viewer.post(reverse(name, args=["acme", key])).status_code == 403
    assert viewer.get(reverse("bill_import", args=["acme"])).status_code == 403
    assert Adjustment.objects.count() == 1


def test_another_team_sees_nothing(charlie, as_user, month, pods):
    stranger = as_user(charlie)
    assert stranger.get(reverse("bill_month", args=["rival", month.pk])).status_code == 404
    assert stranger.post(reverse("bill_accept", args=["rival", month.pk])).status_code == 404
    assert stranger.post(reverse("bill_ask", args=["rival", pods.pk])).status_code == 404
    assert "RunPod</b>" not in stranger.get(reverse("bills", args=["rival"])).content.decode()
    assert not Adjustment.objects.exists()


def test_a_provider_is_asked_now(browser, pods):
    ProviderReading.objects.create(account=pods, subject="charges", next_at=DECEMBER + 900 * DAY)
    answer = browser.post(reverse("bill_ask", args=["acme", pods.pk]), follow=True)
    assert "is asked for its bill" in answer.content.decode()
    assert ProviderReading.objects.get().next_at < DECEMBER + 800 * DAY


def test_a_provider_without_a_bill_is_not_asked(browser, account):
    browser.post(reverse("bill_ask", args=["acme", account.pk]))
    assert not ProviderReading.objects.exists()


def test_the_page_about_costs_shows_the_comparison(vera, as_user, month):
    with time_machine.travel(NOW, tick=False):
        text = as_user(vera).get(reverse("costs", args=["acme"]), {"month": "2026-11"}).content.decode()
    assert "RunPod billed $32.00 more for November" in text


def test_a_team_without_bills_has_no_such_section(rf, acme):
    request = rf.get("/")
    request.team = acme
    assert reconcile_panel(request, Month.of(acme, now=NOW)) is None
