"""The page of a month's report: its mail, who gets it, and the buttons."""

from __future__ import annotations

import pytest

from fleet.costs.reports.models import CostReportMail
from fleet.teams.models import AuditEntry

PAGE = "/t/acme/costs/report/2026-11/"


@pytest.mark.usefixtures("november")
def test_it_shows_the_mail_in_a_frame_that_only_we_may_draw(as_user, vera):
    client = as_user(vera)
    page = client.get(PAGE).content.decode()
    assert f'src="{PAGE}mail/"' in page
    assert "alice@example.org" in page
    mail = client.get(f"{PAGE}mail/")
    assert "$1,500" in mail.content.decode()
    assert mail["X-Frame-Options"] == "SAMEORIGIN"
    assert "frame-ancestors 'self'" in mail["Content-Security-Policy"]
    assert "script-src 'self'" in mail["Content-Security-Policy"]


@pytest.mark.usefixtures("november")
def test_send_now_goes_to_who_asks_and_is_written_down(as_user, vera, outbox):
    page = as_user(vera).post(f"{PAGE}send/", follow=True).content.decode()
    assert [mail.to for mail in outbox] == [["vera@example.org"]]
    assert "Sent to vera@example.org." in page
    assert AuditEntry.objects.get(action="cost_report.send").new == {"month": "2026-11"}
    assert CostReportMail.objects.get().user == vera
    as_user(vera).post(f"{PAGE}send/")
    ids = {mail.extra_headers["Message-ID"] for mail in outbox}
    assert len(outbox) == 2
    assert all("-2026-11-" in one for one in ids)


@pytest.mark.usefixtures("november")
def test_without_a_mail_server_it_says_so(as_user, alice, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    page = as_user(alice).post(f"{PAGE}send/", follow=True).content.decode()
    assert "This installation has no mail server." in page
    assert CostReportMail.objects.count() == 0


@pytest.mark.usefixtures("november")
def test_anybody_gives_it_up_or_asks_for_it(as_user, alice, vera):
    page = as_user(alice).post(f"{PAGE}wish/", {"wants": "0"}, follow=True).content.decode()
    assert "0 people get it" in page
    page = as_user(vera).post(f"{PAGE}wish/", {"wants": "1"}, follow=True).content.decode()
    assert "1 person gets it" in page
    assert "vera@example.org" in page


def test_a_month_without_money_says_so(as_user, vera, outbox):
    client = as_user(vera)
    assert "No money, no mail" in client.get(PAGE).content.decode()
    assert client.get(f"{PAGE}mail/")["Location"] == PAGE
    assert "nothing to send" in client.post(f"{PAGE}send/", follow=True).content.decode()
    assert outbox == []


@pytest.mark.parametrize("name", ["2026-13", "2027-01", "soon"])
def test_what_is_no_month_is_not_there(as_user, vera, name):
    assert as_user(vera).get(f"/t/acme/costs/report/{name}/").status_code == 404


@pytest.mark.usefixtures("november")
def test_another_team_learns_nothing(as_user, charlie):
    for address in (PAGE, f"{PAGE}mail/"):
        assert as_user(charlie).get(address).status_code == 404


@pytest.mark.usefixtures("november")
def test_the_page_of_costs_leads_to_the_files_and_the_report(as_user, vera):
    page = as_user(vera).get("/t/acme/costs/?month=2026-11").content.decode()
    assert "/t/acme/costs/export/?month=2026-11&amp;format=focus&amp;version=1.2" in page
    assert PAGE in page
