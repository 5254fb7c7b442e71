"""Overview says which accounts cannot be read; it is quiet when all can."""

from __future__ import annotations

from fleet.inventory.models import ProviderAccount
from fleet.inventory.register import unread_accounts
from fleet.providers.errors import Unavailable
from fleet.teams.access import TeamRequest
from fleet.teams.models import Team


def asking(team: Team) -> TeamRequest:
    request = TeamRequest()
    request.team = team
    return request


def test_quiet_while_readings_arrive(lab, acme):
    assert unread_accounts(asking(acme)) is None


def test_a_failing_account_is_named_with_its_remedy(lab, acme, vera, as_user, make_instance):
    make_instance(gpus=1)
    ProviderAccount.objects.filter(pk=lab.pk).update(failures=2, error_kind=Unavailable.kind, error_detail="502 & more")
    page = as_user(vera).get("/t/acme/").text
    assert "Providers that cannot be read" in page
    assert "502 &amp; more" in page
    assert "it tries again by itself" in page


def test_another_teams_are_not(lab, rival):
    ProviderAccount.objects.update(failures=2)
    assert unread_accounts(asking(rival)) is None
