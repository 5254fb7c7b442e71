"""The sandbox's past: written once with its account, continued by the first listing without a seam, and turned into money like any other."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.db.models import F, Sum

from fleet.costs.attribution.sync import sync_attribution
from fleet.costs.book.build import build_ledger, rebuild_ledger
from fleet.costs.book.models import LedgerInterval
from fleet.costs.budgets.models import Budget
from fleet.costs.month import Month
from fleet.costs.spend.check import verify_sums
from fleet.costs.spend.figures import By
from fleet.costs.spend.models import CostDay
from fleet.costs.spend.roll import sum_costs
from fleet.costs.spend.spend import spend
from fleet.inventory.models import GPU, Instance, Observation, ProviderAccount
from fleet.inventory.poll import claim_due, poll_account
from fleet.sandbox.cast import ENDED_DAYS, MEMBERS, PAST_MEMBERS, member_of
from fleet.sandbox.desk import Desk
from fleet.sandbox.http_api import SandboxAPI
from fleet.sandbox.past import KNOWN_SECONDS, former_members, turns_of
from fleet.sandbox.schedule import HISTORY_SECONDS
from fleet.sandbox.team import adopt_machines, open_sandbox
from fleet.states import GpuState
from fleet.teams.models import AuditEntry, Team
from fleet.telemetry.rollups.fleet_models import FleetRollupHour
from fleet.telemetry.rollups.models import GpuRollupHour
from fleet.telemetry.rollups.roll import roll_up
from fleet.telemetry.state_codes import SECONDS_COLUMNS
from tests.fleet.sandbox.loopback import serving

NOW = datetime(2026, 11, 18, 10, 20, 40, tzinfo=UTC)
BORN_AT = NOW.timestamp() - 7.5


@pytest.fixture
def desk(tmp_path: Path, time_machine) -> Desk:
    time_machine.move_to(NOW, tick=False)
    found = Desk(tmp_path / "provider.json", lambda: BORN_AT)
    found.clock = NOW.timestamp
    return found


@pytest.fixture
def account(db, desk: Desk) -> ProviderAccount:
    return open_sandbox(key=desk.read_key, born_at=desk.born_at)


@pytest.fixture
def provider(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with serving(SandboxAPI(desk)) as port:
        monkeypatch.setenv("SANDBOX_PORT", str(port))
        yield


def count_up(account: ProviderAccount, now: datetime = NOW) -> None:
    sync_attribution(team=account.team, now=now)
    assert build_ledger(now=now).is_complete
    assert sum_costs(now=now).is_complete


class TestTurns:
    """What changed of a machine, without a database."""

    def test_the_same_birth_gives_the_same_past(self) -> None:
        for member in former_members():
            assert turns_of(member, BORN_AT) == turns_of(member, BORN_AT)

    def test_a_machine_stopped_and_came_back(self) -> None:
        member = member_of("sb-44d031")
        assert member
        words = [turn.status for turn in turns_of(member, BORN_AT)]
        assert words == ["running", "stopped", "running", "stopped", "running"]

    def test_a_price_came_down_once(self) -> None:
        member = member_of("sb-0a1c41")
        assert member
        prices = [turn.price_per_hour for turn in turns_of(member, BORN_AT)]
        assert prices == [Decimal("25.52"), Decimal("23.92")]

    def test_spot_prices_moved_to_the_one_of_today(self) -> None:
        member = member_of("sb-7c6650")
        assert member
        prices = [turn.price_per_hour for turn in turns_of(member, BORN_AT)]
        assert len(prices) > 10
        assert len(set(prices)) > 5
        assert prices[-1] == Decimal("0.26") * 8
        assert all(Decimal("0.22") * 8 <= price <= Decimal("0.30") * 8 for price in prices)

    def test_nobody_looked_for_longer_than_what_is_known(self) -> None:
        for member in former_members():
            assert all(turn.at > BORN_AT - KNOWN_SECONDS for turn in turns_of(member, BORN_AT)[1:])


class TestOnce:
    def test_it_is_written_with_the_account(self, account: ProviderAccount) -> None:
        assert Instance.objects.filter(account=account).count() == len(MEMBERS) - 1 + len(PAST_MEMBERS)
        assert Observation.objects.filter(seen_at__lt=NOW - timedelta(days=20)).exists()
        assert AuditEntry.objects.filter(team=account.team, action="sandbox.past").count() == 1

    def test_opening_again_adds_nothing(self, account: ProviderAccount, desk: Desk) -> None:
        rows = (Observation.objects.count(), GpuRollupHour.objects.count(), Budget.objects.count())
        open_sandbox(key=desk.read_key, born_at=desk.born_at)
        assert (Observation.objects.count(), GpuRollupHour.objects.count(), Budget.objects.count()) == rows

    def test_a_second_account_has_no_past(self, account: ProviderAccount, desk: Desk) -> None:
        ProviderAccount.objects.update(disconnected_at=NOW, name="Old")
        again = open_sandbox(key=desk.read_key, born_at=desk.born_at)
        assert again != account
        assert not Instance.objects.filter(account=again).exists()

    def test_what_breaks_off_leaves_nothing(self, db, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(*_: object, **__: object) -> int:
            raise OSError("No space left on device")

        monkeypatch.setattr("fleet.sandbox.history.write_past_hours", full)
        with pytest.raises(OSError, match="No space"):
            open_sandbox(key=desk.read_key, born_at=desk.born_at)
        monkeypatch.undo()
        assert not Team.objects.filter(slug="sandbox").exists()
        account = open_sandbox(key=desk.read_key, born_at=desk.born_at)
        assert Observation.objects.filter(instance__account=account).exists()

    def test_counting_begins_when_it_is_there(
        self, db, desk: Desk, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks
    ) -> None:
        counted: list[str] = []
        monkeypatch.setattr("fleet.sandbox.team.count_money", lambda: counted.append("once"))
        for _ in range(2):
            with django_capture_on_commit_callbacks(execute=True):
                open_sandbox(key=desk.read_key, born_at=desk.born_at)
        assert counted == ["once"]


class TestTheFirstListing:
    def test_it_finds_everything_as_the_past_left_it(self, account: ProviderAccount, provider: None) -> None:
        before = set(Observation.objects.values_list("pk", flat=True))
        assert [claim.account_id for claim in claim_due(now=NOW)] == [account.pk]
        account.refresh_from_db()
        assert poll_account(account=account, now=NOW).error is None
        fresh = Observation.objects.exclude(pk__in=before)
        assert [row.instance.name for row in fresh] == ["bench-b200-01"]
        assert adopt_machines(account=account) == 1

    def test_gpus_are_those_that_the_agents_name(self, account: ProviderAccount) -> None:
        gpu = GPU.objects.get(instance__external_id="sb-44d031")
        assert gpu.uuid.startswith("GPU-")
        assert (gpu.index, gpu.name, gpu.removed_at) == (0, "NVIDIA L40S", None)


class TestHours:
    def test_they_are_whole_and_end_where_the_agents_history_begins(self, account: ProviderAccount) -> None:
        most = GPU.objects.count() * 24 * 46
        assert 20_000 < GpuRollupHour.objects.count() < most
        assert GpuRollupHour.objects.filter(bucket_at__lt=NOW - timedelta(seconds=KNOWN_SECONDS, hours=1)).count() == 0
        whole = sum((F(column) for column in SECONDS_COLUMNS.values()), start=F("unknown_seconds") * 0)
        rows = GpuRollupHour.objects.annotate(whole=whole)
        assert not rows.exclude(whole__gt=3599.9, whole__lt=3600.1).exists()
        begins = NOW - timedelta(seconds=HISTORY_SECONDS)
        last = GpuRollupHour.objects.latest("bucket_at").bucket_at
        assert last <= begins < last + timedelta(hours=1)
        sums = GpuRollupHour.objects.aggregate(**{name: Sum(name) for name in SECONDS_COLUMNS.values()})
        assert all(sums.values())

    def test_the_roller_counts_the_fleet_over_them(self, account: ProviderAccount, provider: None) -> None:
        rows = GpuRollupHour.objects.count()
        roll_up(now=NOW)
        assert GpuRollupHour.objects.count() >= rows
        seconds = FleetRollupHour.objects.aggregate(working=Sum("working_seconds"))["working"]
        expected = GpuRollupHour.objects.aggregate(working=Sum("working_seconds"))["working"]
        assert seconds == pytest.approx(expected, rel=1e-4)


class TestMoney:
    def test_the_month_and_its_states_are_known_at_once(self, account: ProviderAccount) -> None:
        count_up(account)
        month = Month.of(account.team, now=NOW)
        found = spend(team=account.team, start=month.first, end=month.end, by=[By.PROJECT])
        assert 20_000 < found.all.total < 120_000
        named = [key for key, row in found.rows.items() if key[0] is not None and row.total]
        assert len(named) == 8
        first = NOW.date() - timedelta(days=12)
        found = spend(team=account.team, start=first, end=NOW.date() - timedelta(days=2), by=[])
        assert found.all.states[GpuState.WORKING] > found.all.total / 2
        assert found.all.states[GpuState.STALLED] > 100
        assert found.all.states[GpuState.UNKNOWN] < found.all.total / 20

    def test_yuan_are_converted_and_what_ended_cost_what_it_ran(self, account: ProviderAccount) -> None:
        count_up(account)
        (interval,) = LedgerInterval.objects.filter(meter__instance__external_id="sb-5d2e10", meter__kind="compute")
        assert abs(interval.period.upper - (NOW - timedelta(days=ENDED_DAYS["sb-5d2e10"]))) < timedelta(minutes=1)
        assert CostDay.objects.filter(currency="CNY").exists()
        month = Month.of(account.team, now=NOW)
        found = spend(team=account.team, start=month.first, end=month.end, by=[])
        assert not found.all.unconverted
        assert [used.rate for used in found.rates] == [Decimal("0.1404")]

    def test_sums_agree_a_rebuild_changes_nothing_and_no_other_team_has_any(
        self, account: ProviderAccount, acme: Team
    ) -> None:
        count_up(account)
        instances = list(Instance.objects.values_list("pk", flat=True))
        assert list(rebuild_ledger(instances=instances, check=True)) == []
        assert verify_sums(account.team) == []
        assert not CostDay.objects.exclude(team=account.team).exists()
        assert not Budget.objects.filter(team=acme).exists()

    def test_a_ledger_that_was_built_today_takes_it_in(self, db, desk: Desk) -> None:
        assert build_ledger(now=NOW - timedelta(minutes=5)).is_complete
        open_sandbox(key=desk.read_key, born_at=desk.born_at)
        assert build_ledger(now=NOW).machines == len(former_members())
