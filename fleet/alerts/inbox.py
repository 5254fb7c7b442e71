"""The inbox: a page of a team's alerts with all that is drawn of them, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.core.paginator import Page, Paginator
from django.db import models
from django.db.models import Case, F, QuerySet, Value, When
from django.http import QueryDict
from django.utils.translation import gettext_lazy as _

from fleet.alerts.causes import Text
from fleet.alerts.lines import RELATED, Line, load_lines
from fleet.alerts.models import Alert, Severity
from fleet.alerts.places import provider_name
from fleet.teams.models import Team, User

PAGE_SIZE = 100
CLOSED_SHOWN = timedelta(days=30)


class Which(models.TextChoices):
    OPEN = "open", _("Open")
    SNOOZED = "snoozed", _("Snoozed")
    CLOSED = "closed", _("Closed")


@dataclass(frozen=True, slots=True)
class Grouping:
    """How lines are gathered under headings: what orders them in the database, and the heading of a line."""

    label: Text
    order: tuple[str, ...] = ()
    heading: Callable[[Line], str] | None = None


def _owner(line: Line) -> str:
    instance = line.alert.instance
    return instance.owner.display_name if instance and instance.owner else str(_("nobody's"))


def _provider(line: Line) -> str:
    account = line.account
    return provider_name(account) if account else str(_("no provider"))


GROUPINGS: Mapping[str, Grouping] = {
    "": Grouping(_("machine and cause")),
    "owner": Grouping(_("owner"), ("instance__owner__username",), _owner),
    "provider": Grouping(_("provider"), ("account__kind", "account__name"), _provider),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the address asks for. What it does not know is left out, as old bookmarks should go on working."""

    which: Which = Which.OPEN
    severities: tuple[str, ...] = ()
    by: str = ""
    page: str = "1"

    @classmethod
    def of(cls, query: QueryDict) -> Wanted:
        which, by = query.get("show", ""), query.get("by", "")
        severities = tuple(word for word in query.getlist("severity") if word in Severity.values)
        return cls(
            which=Which(which) if which in Which.values else Which.OPEN,
            severities=severities,
            by=by if by in GROUPINGS else "",
            page=query.get("page", "1"),
        )

    @property
    def query(self) -> str:
        """The address of this list again, from its first page."""
        query = QueryDict(mutable=True)
        query.update({name: value for name, value in (("show", self.which.value), ("by", self.by)) if value})
        query.setlist("severity", list(self.severities))
        return query.urlencode()


def closed_lately(team: Team, now: datetime) -> QuerySet[Alert]:
    return Alert.objects.filter(team=team, closed_at__gt=now - CLOSED_SHOWN)


def find_alerts(*, team: Team, wanted: Wanted, now: datetime) -> QuerySet[Alert]:
    """Worst first, of the same severity the dearest, of the same price the oldest; what is closed, newest first."""
    found = (
        closed_lately(team, now) if wanted.which is Which.CLOSED else Alert.objects.filter(team=team, closed_at=None)
    )
    if wanted.which is not Which.CLOSED:
        found = found.filter(snoozed_at__isnull=wanted.which is Which.OPEN)
    if wanted.severities:
        found = found.filter(severity__in=wanted.severities)
    gathered = [F(name).asc(nulls_last=True) for name in GROUPINGS[wanted.by].order]
    if wanted.which is Which.CLOSED:
        return found.order_by(*gathered, "-closed_at", "-pk")
    rank = Case(*(When(severity=each, then=Value(-each.rank)) for each in Severity), output_field=models.IntegerField())
    return found.order_by(*gathered, rank, F("price_per_hour").desc(nulls_last=True), "opened_at", "pk")


@dataclass(frozen=True)
class Inbox:
    wanted: Wanted
    page: Page[Alert]
    lines: list[Line]

    @property
    def sections(self) -> list[tuple[str, list[Line]]]:
        """Lines under their headings; one without a heading where nothing is gathered."""
        heading = GROUPINGS[self.wanted.by].heading
        if heading is None:
            return [("", self.lines)]
        return [(name, list(lines)) for name, lines in groupby(self.lines, key=heading)]


def load_inbox(*, team: Team, wanted: Wanted, now: datetime, reader: User | None = None) -> Inbox:
    found = find_alerts(team=team, wanted=wanted, now=now)
    page = Paginator(found.select_related(*RELATED), PAGE_SIZE).get_page(wanted.page)
    return Inbox(wanted, page, load_lines(list(page), now=now, reader=reader))
