"""The monthly report goes out: once to each who wants it, on the first at eight in the team's time zone.

A row is claimed before a mail is handed over, so that of two senders one has it. What the mail server refused for now is tried again; what
it may have taken is not. A sender that ends in the middle of a mail leaves its row without an answer, which the page shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from django.db import IntegrityError, transaction
from django.db.models import F

from fleet.alerts.channels.senders.base import Outcome, Result
from fleet.alerts.channels.senders.email import attempt
from fleet.costs.book.models import LedgerChange
from fleet.costs.month import Month
from fleet.costs.reports.mail import mail_of
from fleet.costs.reports.models import CostReportMail, CostReportWish
from fleet.costs.reports.report import Report, report_of
from fleet.costs.spend.models import CostProgress
from fleet.teams.audit import Actor, record
from fleet.teams.models import Membership, Role, Team, User

SEND_AT = time(8)
# A report that comes later than this is no news: an installation that was away does not make up for it.
LATE_DAYS = 5
RETRY_AFTER = timedelta(minutes=10)
MOST_ATTEMPTS = 6


def send_due(*, now: datetime) -> int:
    """Of all teams; how many went out."""
    return sum(send_month(team=team, month=month, now=now) for team, month in due(now))


def due(now: datetime) -> Iterator[tuple[Team, Month]]:
    """The month before, where it is time for it and all its days are summed."""
    for team in Team.objects.filter(is_sandbox=False).order_by("pk"):
        month = Month.of(team, now=now).before
        begins = send_at(month)
        if begins <= now < begins + timedelta(days=LATE_DAYS) and is_summed(team, month):
            yield team, month


def send_at(month: Month) -> datetime:
    return datetime.combine(month.next_first, SEND_AT, ZoneInfo(month.zone.key))


def is_summed(team: Team, month: Month) -> bool:
    """Up to its end, and nothing of it is to be summed again, as after a change of the time zone."""
    if LedgerChange.objects.filter(account__team=team, from_at__lt=month.ends_at).exists():
        return False
    done = CostProgress.objects.filter(team=team, time_zone=team.time_zone, summed_until__gte=month.ends_at)
    return done.exists()


def send_month(*, team: Team, month: Month, now: datetime) -> int:
    """To whom it has not gone yet. Without any money there is no mail, and no row either."""
    waiting = [user for user in readers_of(team) if is_open(team, month, user, now)]
    report = report_of(team=team, month=month) if waiting else None
    if report is None:
        return 0
    return sum(send_to(team=team, report=report, user=user, now=now) for user in waiting)


def readers_of(team: Team) -> list[User]:
    """Admins who did not give it up, and others who asked for it; with an address to send to."""
    wishes = dict(CostReportWish.objects.filter(team=team).values_list("user_id", "wants"))
    members = Membership.objects.filter(team=team, user__is_active=True).exclude(user__email="")
    rows = members.select_related("user").order_by("user_id")
    return [row.user for row in rows if wishes.get(row.user_id, row.role == Role.ADMIN)]


def is_open(team: Team, month: Month, user: User, now: datetime) -> bool:
    row = CostReportMail.objects.filter(team=team, month=month.first, user=user).first()
    return row is None or (row.retry_at is not None and row.retry_at <= now)


def send_to(*, team: Team, report: Report, user: User, now: datetime) -> bool:
    """Whether it went out. False also where another sender has it."""
    row = claim(team=team, month=report.month, user=user, now=now)
    if row is None:
        return False
    note(row, attempt(mail_of(report, team=team, user=user)), now)
    return row.sent_at is not None


def claim(*, team: Team, month: Month, user: User, now: datetime) -> CostReportMail | None:
    key = {"team": team, "month": month.first, "user": user}
    try:
        with transaction.atomic():
            return CostReportMail.objects.create(**key, claimed_at=now)
    except IntegrityError:
        again = CostReportMail.objects.filter(**key, sent_at=None, retry_at__lte=now)
        taken = again.update(claimed_at=now, retry_at=None, error="", attempts=F("attempts") + 1)
        return CostReportMail.objects.get(**key) if taken else None


def note(row: CostReportMail, outcome: Outcome, now: datetime) -> None:
    if outcome.result is Result.SENT:
        row.sent_at = now
    else:
        row.error = outcome.code or outcome.result.value
        may_try = outcome.result is Result.RETRY and row.attempts < MOST_ATTEMPTS
        row.retry_at = now + RETRY_AFTER * 2 ** (row.attempts - 1) if may_try else None
    row.save(update_fields=["sent_at", "error", "retry_at"])


def send_again(*, actor: Actor, team: Team, month: Month, user: User, now: datetime) -> Outcome | None:
    """To one who asked for it now, whatever went out before. None where there is nothing to report."""
    report = report_of(team=team, month=month)
    if report is None:
        return None
    with transaction.atomic():
        record(actor=actor, team=team, action="cost_report.send", target=user, new={"month": str(month)})
    outcome = attempt(mail_of(report, team=team, user=user, again=f"-{now:%Y%m%d%H%M%S}"))
    if outcome.result is Result.SENT:
        CostReportMail.objects.update_or_create(
            team=team,
            month=month.first,
            user=user,
            defaults={"sent_at": now, "error": "", "retry_at": None},
            create_defaults={"claimed_at": now, "sent_at": now},
        )
    return outcome


@transaction.atomic
def choose_report(*, actor: Actor, team: Team, user: User, wants: bool) -> None:
    """Whether this person gets it from now on."""
    before = user in readers_of(team)
    CostReportWish.objects.update_or_create(team=team, user=user, defaults={"wants": wants})
    if before != wants:
        record(
            actor=actor, team=team, action="cost_report.wish", target=user, old={"wants": before}, new={"wants": wants}
        )
