"""The sandbox's team: made once, with an account that the real poller reads, and visible to everybody without being theirs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from fleet.idle.policies.models import IdlePolicy
from fleet.idle.policies.shown import policies_of
from fleet.idle.policies.words import sentence
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.poll import claim_due, poll_account
from fleet.sandbox.client import TryLaterError
from fleet.sandbox.desk import Desk
from fleet.sandbox.http_api import SandboxAPI
from fleet.sandbox.office import DashboardOffice
from fleet.sandbox.team import SlugTakenError, adopt_machines, listed_machines, new_enrolment_token, open_sandbox
from fleet.teams.models import AuditEntry, Project, Team
from fleet.telemetry.enrolment import enrol_machine
from fleet.telemetry.matching import Claim
from tests.fleet.sandbox.loopback import serving


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "provider.json", lambda: timezone.now().timestamp())


@pytest.fixture
def provider(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    with serving(SandboxAPI(desk)) as port:
        monkeypatch.setenv("SANDBOX_PORT", str(port))
        yield port


@pytest.fixture
def sandbox_account(db, desk: Desk) -> ProviderAccount:
    return open_sandbox(key=desk.read_key)


def poll(account: ProviderAccount) -> None:
    now = timezone.now()
    assert account.pk in [claim.account_id for claim in claim_due(now=now)]
    account.refresh_from_db()
    outcome = poll_account(account=account, now=now)
    assert outcome.error is None


def test_it_is_a_team_of_its_own_that_nobody_is_a_member_of(sandbox_account: ProviderAccount) -> None:
    team = sandbox_account.team
    assert (team.slug, team.is_sandbox, team.memberships.count()) == ("sandbox", True, 0)
    assert Project.objects.filter(team=team).count() == 8


def test_opening_it_again_makes_nothing_twice(sandbox_account: ProviderAccount, desk: Desk) -> None:
    again = open_sandbox(key=desk.read_key)
    assert again.pk == sandbox_account.pk
    assert Team.objects.filter(is_sandbox=True).count() == 1
    assert ProviderAccount.objects.count() == 1
    assert IdlePolicy.objects.count() == 2


def test_its_policies_stop_forgotten_notebooks_and_tell_of_the_rest(sandbox_account: ProviderAccount) -> None:
    notebooks, rest = policies_of(sandbox_account.team)
    assert sentence(notebooks) == "Machines of Playground idle for 30 min are stopped 10 min after a warning."
    assert sentence(rest) == "Machines idle for 1 h are told of, and go on running."


def test_what_people_made_of_its_policies_stays(sandbox_account: ProviderAccount, desk: Desk) -> None:
    IdlePolicy.objects.all().delete()
    open_sandbox(key=desk.read_key)
    assert not IdlePolicy.objects.exists()


def test_a_new_key_replaces_the_old_one(sandbox_account: ProviderAccount, provider: int, desk: Desk) -> None:
    desk.read_key = "sbr_new"
    poll(open_sandbox(key="sbr_new"))


def test_every_write_is_on_record(sandbox_account: ProviderAccount) -> None:
    actions = AuditEntry.objects.filter(team=sandbox_account.team, actor_label="sandbox").values_list(
        "action", flat=True
    )
    assert {"team.create", "project.create", "account.create"} <= set(actions)


def test_the_key_is_kept_sealed(sandbox_account: ProviderAccount, desk: Desk) -> None:
    assert desk.read_key not in str(sandbox_account.options)
    assert desk.read_key.encode() not in bytes(sandbox_account.credentials)


def test_a_team_of_people_keeps_its_address(db) -> None:
    Team.objects.create(name="Sand and Box", slug="sandbox")
    with pytest.raises(SlugTakenError, match="SANDBOX=0"):
        open_sandbox(key="k")


def test_everybody_may_look_and_nobody_may_change(sandbox_account: ProviderAccount, alice, as_user) -> None:
    assert as_user(alice).get("/t/sandbox/").status_code == 200


@pytest.mark.django_db
class TestMachines:
    def test_the_real_poller_lists_them(self, sandbox_account: ProviderAccount, provider: int) -> None:
        poll(sandbox_account)
        machines = Instance.objects.filter(account=sandbox_account)
        assert machines.count() == 24
        assert listed_machines(sandbox_account) == {machine.external_id for machine in machines}
        assert not machines.filter(price_per_hour=None).exists()
        assert not machines.filter(storage_price_per_hour=None).exists()

    def test_they_are_registered_under_their_project_and_owner(
        self, sandbox_account: ProviderAccount, provider: int
    ) -> None:
        poll(sandbox_account)
        assert adopt_machines(account=sandbox_account) == 24
        assert adopt_machines(account=sandbox_account) == 0
        machine = Instance.objects.get(name="vision-train-01")
        assert (machine.managed, machine.labels) == (True, {"owner": "Mei Lin"})
        assert machine.project is not None
        assert machine.project.slug == "vision"

    def test_an_agent_is_matched_to_its_listed_machine(self, sandbox_account: ProviderAccount, provider: int) -> None:
        poll(sandbox_account)
        token = new_enrolment_token(team=sandbox_account.team)
        claim = Claim(machine_id="m1", hostname="llm-pre-01", provider_ids={"sandbox_instance_id": "sb-0a1c41"})
        enrolled = enrol_machine(secret=token, claim=claim, now=timezone.now())
        assert enrolled.agent.instance == Instance.objects.get(external_id="sb-0a1c41")
        assert enrolled.agent.match_conflict == ""

    def test_its_figures_are_in_no_other_team(
        self, sandbox_account: ProviderAccount, provider: int, acme: Team
    ) -> None:
        poll(sandbox_account)
        assert not Instance.objects.filter(team=acme).exists()


@pytest.mark.django_db(transaction=True)
class TestOffice:
    async def test_a_machine_is_listed_once_it_is(self, desk: Desk) -> None:
        from asgiref.sync import sync_to_async

        account = await sync_to_async(open_sandbox)(key=desk.read_key)
        office = DashboardOffice(account)
        assert not await office.is_listed("sb-0a1c41")
        await sync_to_async(Instance.objects.create)(
            team=account.team, account=account, external_id="sb-0a1c41", name="llm-pre-01", managed=True
        )
        office._looked_at = float("-inf")
        assert await office.is_listed("sb-0a1c41")

    async def test_a_token_is_made_once_and_again_when_refused(self, desk: Desk) -> None:
        from asgiref.sync import sync_to_async

        office = DashboardOffice(await sync_to_async(open_sandbox)(key=desk.read_key))
        first = await office.enrolment_token()
        assert await office.enrolment_token() == first
        second = await office.enrolment_token(refused=first)
        assert second != first
        assert await office.enrolment_token(refused=first) == second

    async def test_a_database_that_is_away_means_try_later(self, desk: Desk, monkeypatch) -> None:
        from asgiref.sync import sync_to_async
        from django.db import OperationalError

        office = DashboardOffice(await sync_to_async(open_sandbox)(key=desk.read_key))

        def away(**_: object) -> str:
            raise OperationalError("the server closed the connection")

        monkeypatch.setattr("fleet.sandbox.office.new_enrolment_token", away)
        with pytest.raises(TryLaterError, match="database is away"):
            await office.enrolment_token()
