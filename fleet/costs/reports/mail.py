"""The report as a mail: the same in HTML and in plain text, in its reader's language.

The chart is made of table cells: every mail program shows those, also the many that load no images, and none of the installed libraries
draws one.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from django.core.mail import EmailMultiAlternatives
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import translation
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from fleet.alerts.channels.links import base_url
from fleet.alerts.channels.senders.email import sender_host
from fleet.costs.reports.notes import notes_of
from fleet.costs.reports.report import Report
from fleet.formats import whole_money_text
from fleet.teams.models import Team, User

HTML, TEXT = "costs/report_mail.html", "costs/report_mail.txt"


def mail_of(report: Report, *, team: Team, user: User, again: str = "") -> EmailMultiAlternatives:
    """Sent twice it has the same Message-ID, and mail programs show it once. `again`: what makes one asked for anew another."""
    month = report.month
    page = page_url(team, report)
    headers = {
        "Message-ID": f"<costs-{team.pk}-{month}-{user.pk}{again}@{sender_host()}>",
        "Auto-Submitted": "auto-generated",
        "List-Unsubscribe": f"<{page}>",
    }
    with in_language_of(user):
        mail = EmailMultiAlternatives(
            subject_of(report, team), text_of(report, team=team), to=[user.email], headers=headers
        )
        mail.attach_alternative(html_of(report, team=team), "text/html")
    return mail


def in_language_of(user: User) -> AbstractContextManager[Any]:
    return translation.override(user.language or "en")


def html_of(report: Report, *, team: Team) -> str:
    return render_to_string(HTML, context_of(report, team))


def text_of(report: Report, *, team: Team) -> str:
    return render_to_string(TEXT, context_of(report, team)).strip() + "\n"


def context_of(report: Report, team: Team) -> dict[str, Any]:
    return {
        "report": report,
        "team": team,
        "language": translation.get_language(),
        "title": subject_of(report, team),
        "notes": list(notes_of(report)),
        "costs_url": f"{base_url()}{reverse('costs', args=[team.slug])}?month={report.month}",
        "page_url": page_url(team, report),
        "machine_url": base_url() + reverse("instances", args=[team.slug]),
    }


def subject_of(report: Report, team: Team) -> str:
    words = {
        "team": team.name,
        "money": whole_money_text(report.total, report.currency),
        "month": date_format(report.month.first, "YEAR_MONTH_FORMAT"),
    }
    return _("%(team)s: %(money)s in %(month)s") % words


def page_url(team: Team, report: Report) -> str:
    return base_url() + reverse("costs_report", args=[team.slug, str(report.month)])
