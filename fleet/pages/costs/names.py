"""What the values that money is split by are called, in as many queries as there are kinds of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from django.utils.formats import date_format
from django.utils.translation import gettext as _

from fleet.costs.ledger.intervals import Meter
from fleet.costs.spend.spend import By
from fleet.costs.words import METERS
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.words import MARKETS, TENANCIES
from fleet.providers.base import Market, Tenancy
from fleet.providers.registry import adapters
from fleet.states import GpuState
from fleet.teams.models import Project, Team, User
from fleet.words import state_word


def names_of(team: Team, by: By, values: Iterable[object]) -> dict[object, str]:
    """The name of each value; nobody's and nothing's too."""
    wanted = set(values)
    stored = _stored(team, by, [value for value in wanted if isinstance(value, int)])
    return {value: stored.get(value) or _word(by, value) for value in wanted}


def _stored(team: Team, by: By, ids: list[int]) -> dict[object, str]:
    if by is By.PROJECT:
        return dict(Project.objects.filter(team=team, pk__in=ids).values_list("pk", "name"))
    if by is By.OWNER:
        return {user.pk: str(user) for user in User.objects.filter(pk__in=ids)}
    if by is By.ACCOUNT:
        return dict(ProviderAccount.objects.filter(team=team, pk__in=ids).values_list("pk", "name"))
    if by is By.MACHINE:
        return dict(Instance.objects.filter(team=team, pk__in=ids).values_list("pk", "name"))
    return {}


def _word(by: By, value: object) -> str:
    if value is None or value == "":
        return _nothing(by)
    if by is By.PROVIDER:
        adapter = adapters().get(str(value))
        return _(adapter.label) if adapter else str(value)
    if isinstance(value, date):
        return date_format(value, "F Y" if by is By.MONTH else "j F")
    return _vocabulary(by, str(value))


def _vocabulary(by: By, value: str) -> str:
    if by is By.STATE:
        return state_word(GpuState(value))
    if by is By.METER and value in set(Meter):
        return str(METERS[Meter(value)])
    if by is By.MARKET and value in set(Market):
        return str(MARKETS[Market(value)])
    if by is By.TENANCY and value in set(Tenancy):
        return str(TENANCIES[Tenancy(value)])
    return value


def _nothing(by: By) -> str:
    words = {
        By.PROJECT: _("no project"),
        By.OWNER: _("no owner"),
        By.MACHINE: _("no machine"),
        By.JOB: _("no job"),
        By.LABEL: _("without this label"),
    }
    return words.get(by, _("not told"))
