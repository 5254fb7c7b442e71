"""The report goes out once, at eight on the first in the team's time zone, to those who want it."""

from __future__ import annotations

import smtplib
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread

import pytest
from django.db import connection

from fleet.costs.book.models import LedgerChange
from fleet.costs.month import Month
from fleet.costs.reports import sending
from fleet.costs.reports.models import CostReportMail
from fleet.costs.reports.sending import MOST_ATTEMPTS, choose_report, due, send_at, send_due
from fleet.costs.spend.models import CostProgress
from fleet.teams.audit import Actor
from fleet.teams.models import AuditEntry, Membership

EMAIL = "fleet.alerts.channels.senders.email"


def told(outbox) -> list[str]:
    return sorted(mail.to[0] for mail in outbox)


@pytest.mark.usefixtures("november")
def test_admins_get_it_once_and_others_if_they_ask(acme, alice, bob, vera, outbox, now):
    choose_report(actor=Actor.system("test"), team=acme, user=vera, wants=True)
    assert send_due(now=now) == 2
    assert told(outbox) == ["alice@example.org", "vera@example.org"]
    assert outbox[0].subject == "Acme: $1,500 in November 2026"
    assert send_due(now=now + timedelta(minutes=5)) == 0
    assert send_due(now=now + timedelta(days=3)) == 0


@pytest.mark.usefixtures("november")
def test_who_gave_it_up_gets_none(acme, alice, outbox, now):
    choose_report(actor=Actor.system("test"), team=acme, user=alice, wants=False)
    assert send_due(now=now) == 0
    assert outbox == []
    entry = AuditEntry.objects.get(action="cost_report.wish")
    assert (entry.old, entry.new) == ({"wants": True}, {"wants": False})


@pytest.mark.parametrize(
    ("zone", "begins"),
    [
        ("UTC", "2026-12-01T08:00:00+00:00"),
        ("Asia/Shanghai", "2026-12-01T00:00:00+00:00"),
        ("America/New_York", "2026-12-01T13:00:00+00:00"),
        ("Asia/Kathmandu", "2026-12-01T02:15:00+00:00"),
    ],
)
@pytest.mark.usefixtures("november")
def test_eight_is_eight_in_the_teams_zone(acme, zone, begins):
    acme.time_zone = zone
    acme.save()
    CostProgress.objects.update(summed_until=datetime(2026, 12, 2, tzinfo=UTC), time_zone=zone)
    at = datetime.fromisoformat(begins)
    assert list(due(at - timedelta(seconds=1))) == []
    assert [(team, str(month)) for team, month in due(at)] == [(acme, "2026-11")]
    assert list(due(at + timedelta(days=5))) == []


@pytest.mark.parametrize(("name", "hour"), [("2026-10", 13), ("2027-03", 12)])
def test_a_change_of_clocks_on_the_way_moves_it(acme, name, hour):
    """New York: eight is 13:00 UTC in winter and 12:00 in summer; in 2026 clocks go back on the first of November itself."""
    acme.time_zone = "America/New_York"
    month = Month.of(acme, now=datetime(2027, 6, 1, tzinfo=UTC), name=name)
    assert send_at(month).astimezone(UTC).hour == hour


@pytest.mark.usefixtures("november")
def test_days_that_are_not_summed_are_waited_for(acme, outbox, now):
    CostProgress.objects.update(summed_until=datetime(2026, 11, 30, 23, tzinfo=UTC))
    assert send_due(now=now) == 0
    CostProgress.objects.update(summed_until=now)
    assert send_due(now=now) == 1


@pytest.mark.usefixtures("november")
def test_a_month_that_is_being_summed_again_is_waited_for(acme, account, outbox, now):
    """As after a change of the team's time zone: the clock of the sums is right, and what they hold is half of it."""
    CostProgress.objects.update(summed_until=now, time_zone="Asia/Shanghai")
    assert send_due(now=now) == 0
    CostProgress.objects.update(time_zone="UTC")
    asked = LedgerChange.objects.create(account=account, from_at=datetime(2026, 11, 3, tzinfo=UTC))
    assert send_due(now=now) == 0
    asked.delete()
    assert send_due(now=now) == 1


def test_no_money_no_mail(acme, alice, summed, outbox, now):
    assert send_due(now=now) == 0
    assert (outbox, CostReportMail.objects.count()) == ([], 0)


@pytest.mark.usefixtures("november")
def test_the_sandbox_sends_nothing(acme, outbox, now):
    acme.is_sandbox = True
    acme.save()
    assert send_due(now=now) == 0


@pytest.mark.usefixtures("november")
def test_what_the_server_does_not_take_now_is_tried_again_and_not_for_ever(outbox, now, monkeypatch):
    def refuse(mail):
        raise smtplib.SMTPConnectError(421, "busy")

    with monkeypatch.context() as patch:
        patch.setattr(f"{EMAIL}.deliver", refuse)
        at = now
        for _attempt in range(MOST_ATTEMPTS):
            assert send_due(now=at) == 0
            row = CostReportMail.objects.get()
            at = row.retry_at or at
        assert (row.attempts, row.error, row.retry_at) == (MOST_ATTEMPTS, "mail_server", None)
    assert send_due(now=at + timedelta(hours=1)) == 0


@pytest.mark.usefixtures("november")
def test_a_second_attempt_arrives(outbox, now, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(f"{EMAIL}.deliver", lambda _mail: (_ for _ in ()).throw(ConnectionRefusedError()))
        send_due(now=now)
    assert send_due(now=now + timedelta(minutes=9)) == 0
    assert send_due(now=now + timedelta(minutes=10)) == 1
    row = CostReportMail.objects.get()
    assert (row.attempts, row.error, row.sent_at) == (2, "", now + timedelta(minutes=10))


@pytest.mark.usefixtures("november")
def test_what_may_have_arrived_is_not_sent_again(outbox, now, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(f"{EMAIL}.deliver", lambda _mail: (_ for _ in ()).throw(TimeoutError()))
        send_due(now=now)
    assert send_due(now=now + timedelta(days=1)) == 0
    assert CostReportMail.objects.get().error == "no_answer"


@pytest.mark.usefixtures("november")
def test_a_sender_that_ended_in_the_middle_is_not_repeated(acme, alice, outbox, now):
    CostReportMail.objects.create(team=acme, month="2026-11-01", user=alice, claimed_at=now)
    assert send_due(now=now + timedelta(hours=1)) == 0
    assert outbox == []


@pytest.mark.usefixtures("november")
def test_without_a_mail_server_nothing_is_written_to_a_log(settings, now, capsys):
    settings.EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
    assert send_due(now=now) == 0
    assert CostReportMail.objects.get().error == "no_mail_server"
    assert "Acme" not in capsys.readouterr().out


@pytest.mark.usefixtures("november")
def test_who_left_gets_none(acme, alice, outbox, now):
    Membership.objects.filter(team=acme, user=alice).delete()
    assert send_due(now=now) == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("november")
def test_two_workers_at_once_send_one_mail(outbox, now, monkeypatch):
    """Both see that nothing went out yet, and meet before either has claimed it."""
    barrier, real = Barrier(2), sending.claim

    def meet(**asked):
        barrier.wait(timeout=20)
        return real(**asked)

    monkeypatch.setattr(sending, "claim", meet)
    counts: list[int] = []

    def work() -> None:
        try:
            counts.append(send_due(now=now))
        finally:
            connection.close()

    workers = [Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=60)
    assert sorted(counts) == [0, 1]
    assert len(outbox) == 1
