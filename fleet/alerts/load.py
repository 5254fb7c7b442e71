"""Reads the snapshot of a team: a constant number of queries, plain rows, no model instances of GPUs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Q

from fleet.alerts import rows
from fleet.alerts.findings import Part
from fleet.alerts.models import PendingSignal, Signal
from fleet.alerts.snapshot import Account, Agent, Asked, Gpu, Host, Machine, Notice, OpenPart, Snapshot, Trouble
from fleet.inventory.adapters import can
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationState
from fleet.inventory.provider_word.models import ProviderNotice
from fleet.providers.base import Capability, InstanceState
from fleet.states import DEFAULTS, Evidence, GpuState, classify
from fleet.teams.models import Team
from fleet.telemetry.brief import AgentBrief
from fleet.telemetry.latest import limits_for
from fleet.telemetry.models import Agent as AgentRow
from fleet.telemetry.pace import scrape_intervals

_OFF = frozenset({InstanceState.STOPPED, InstanceState.TERMINATED})
_MACHINE_COLUMNS = (
    "pk", "name", "account_id", "state", "billing", "managed", "first_seen_at", "last_seen_at", "expires_at",
    "gpu_count", "price_per_hour", "currency", "doubted_since", "gpu_model",
    "gpu_memory_mib",
)  # fmt: skip
# As far back as a rule may be told to look.
_TOLD_FOR = timedelta(days=7)
_BY_PEOPLE = ("superseded", "abandoned")
_AGENT_COLUMNS = (
    "instance_id", "heartbeat_at", "enrolled_at", "version", "nvml_state", "nvml_detail", "nvml_since",
    "clock_skew_seconds", "oldest_queued_at", "interval_seconds", "report_seconds",
)  # fmt: skip


def load_snapshot(
    *,
    team: Team,
    now: datetime,
    watching_since: datetime,
    agent_version: str = "",
    troubles: Sequence[Trouble] = (),
) -> Snapshot:
    machines = Instance.objects.filter(team=team, gone_at=None).order_by("pk").values(*_MACHINE_COLUMNS)
    bases = list(machines)
    ids = [base["pk"] for base in bases]
    parts = _Parts(ids, now)
    return Snapshot(
        machines=tuple(parts.machine(base) for base in bases),
        accounts=_accounts(team),
        watching_since=watching_since,
        agent_version=agent_version,
        troubles=tuple(troubles),
        asked=asked_of_providers(team, now),
        notices=notices_of(team),
        opened=opened_parts(team),
    )


def asked_of_providers(team: Team, now: datetime) -> tuple[Asked, ...]:
    """One query. What a person gave up or put another act in the place of is no trouble."""
    later = Operation.objects.filter(instance=OuterRef("instance"), requested_at__gt=OuterRef("requested_at"))
    refused = (
        Q(state=OperationState.FAILED, failed_at__gt=now - _TOLD_FOR) & ~Q(error_kind__in=_BY_PEOPLE) & ~Exists(later)
    )
    found = Operation.objects.filter(Q(state__in=OPEN_STATES) | refused, team=team).order_by("pk")
    return tuple(
        Asked(
            pk=row.pk,
            kind=row.kind,
            is_open=row.is_open,
            machine=row.machine_name,
            instance_id=row.instance_id,
            account_id=row.account_id,
            requested_at=row.requested_at,
            failed_at=row.failed_at,
            attempts=row.attempts,
            seen_state=row.seen_state,
            seen_billing=row.seen_billing,
            error_kind=row.error_kind,
            price_per_hour=row.price_per_hour,
            currency=row.currency,
        )
        for row in found.select_related("instance")
    )


def notices_of(team: Team) -> tuple[Notice, ...]:
    """One query. Of an account that nobody asks any more nobody knows whether they still stand."""
    rows = ProviderNotice.objects.filter(
        account__team=team, gone_at=None, instance__gone_at=None, account__disconnected_at=None
    ).order_by("pk")
    columns = ("pk", "kind", "instance_id", "account_id", "first_seen_at", "starts_at", "detail")
    return tuple(Notice(*row) for row in rows.values_list(*columns))


def opened_parts(team: Team) -> dict[tuple[str, str], frozenset[OpenPart]]:
    """(cause, kind) -> what is open or pending: (subject, detail)."""
    found: dict[Part, set[OpenPart]] = defaultdict(set)
    signals = Signal.objects.filter(alert__team=team, alert__closed_at=None, cleared_at=None)
    pending = PendingSignal.objects.filter(team=team)
    columns = ("kind", "detail")
    for cause, subject, kind, detail in (
        *signals.values_list("alert__cause", "alert__subject", *columns),
        *pending.values_list("cause", "subject", *columns),
    ):
        found[cause, kind].add((subject, detail))
    return {key: frozenset(values) for key, values in found.items()}


class _Parts:
    """What belongs to machines, by machine."""

    def __init__(self, ids: Sequence[int], now: datetime) -> None:
        self.now = now
        self.paces = scrape_intervals(ids)
        self.agents, self.stale = _agents(ids, self.paces)
        self.hosts = rows.hosts(ids)
        self.gpus = rows.gpus(ids)
        self.happened = rows.happened(ids, now)
        self.changes = rows.price_changes(ids, now)
        self.growth = rows.growth(rows.filling(self.hosts), now)

    def machine(self, base: dict[str, Any]) -> Machine:
        pk = base["pk"]
        powered = _powered(base["state"])
        stale_after = self.stale.get(pk, DEFAULTS.stale_after)
        host = self._host(pk, stale_after)
        return Machine(
            **base,
            powered=powered,
            scrape_seconds=self.paces.get(pk, 0),
            agent=self.agents.get(pk),
            host=host,
            gpus=tuple(self._gpus(pk, host, powered, stale_after)),
            happened=self.happened.get(pk, ()),
            price_change=self.changes.get(pk),
        )

    def _host(self, pk: int, stale_after: timedelta) -> Host | None:
        row = self.hosts.get(pk)
        if row is None:
            return None
        return Host(
            fresh=self.now - row.sampled_at <= stale_after,
            sampled_at=row.sampled_at,
            memory_used_bytes=row.memory_used_bytes,
            memory_total_bytes=row.memory_total_bytes,
            cpu_iowait_percent=row.cpu_iowait_percent,
            pressure_io_percent=row.pressure_io_percent,
            filesystems=row.filesystems,
            fill_bytes_per_second=self.growth.get(pk),
        )

    def _gpus(self, pk: int, host: Host | None, powered: bool | None, stale_after: timedelta) -> Iterable[Gpu]:
        found = self.gpus.get(pk, ())
        parents = {row.mig_parent_uuid for row in found if row.mig_parent_uuid}
        for row in found:
            sampled_at = None if row.sampled is None else datetime.fromtimestamp(row.sampled, UTC)
            fresh = sampled_at is not None and self.now - sampled_at <= stale_after
            is_parent = row.uuid in parents
            state = GpuState.UNKNOWN if is_parent else _state(row, sampled_at, host, powered, now=self.now)
            yield _gpu(row, sampled_at, state, is_parent=is_parent, fresh=fresh)


def _gpu(row: rows.GpuRow, sampled_at: datetime | None, state: GpuState, *, is_parent: bool, fresh: bool) -> Gpu:
    return Gpu(
        pk=row.pk,
        index=row.index,
        name=row.name,
        is_parent=is_parent,
        is_part=bool(row.mig_parent_uuid),
        fresh=fresh,
        state=state,
        sampled_at=sampled_at,
        lost=bool(row.lost),
        utilization_percent=row.utilization_percent,
        sm_activity=row.sm_activity,
        power_watts=row.power_watts,
        power_limit_watts=row.power_limit_watts,
        memory_used_bytes=row.memory_used_bytes,
        memory_total_bytes=row.memory_total_bytes,
        temperature_celsius=row.temperature_celsius,
        throttle_reasons=row.throttle_reasons,
        ecc_uncorrected=row.ecc_uncorrected,
        remap_pending=row.remap_pending,
        remap_failed=row.remap_failed,
    )


def _state(
    row: rows.GpuRow, sampled_at: datetime | None, host: Host | None, powered: bool | None, *, now: datetime
) -> GpuState:
    evidence = Evidence(
        now=now,
        powered=powered,
        sampled_at=sampled_at,
        lost=bool(row.lost),
        utilization_percent=row.utilization_percent,
        sm_activity=row.sm_activity,
        power_watts=row.power_watts,
        power_limit_watts=row.power_limit_watts,
        memory_used_bytes=row.memory_used_bytes,
        process_count=row.process_count,
        host_sampled_at=host.sampled_at if host else None,
        cpu_iowait_percent=host.cpu_iowait_percent if host else None,
        pressure_io_percent=host.pressure_io_percent if host else None,
    )
    return classify(evidence).state


def _powered(state: str) -> bool | None:
    if state in _OFF:
        return False
    return None if state == InstanceState.UNKNOWN else True


def _agents(ids: Sequence[int], paces: Mapping[int, int]) -> tuple[dict[int, Agent], dict[int, timedelta]]:
    """Agents that may speak, and after how long a machine's readings are old."""
    agents: dict[int, Agent] = {}
    stale: dict[int, timedelta] = {pk: limits_for(None, pace).stale_after for pk, pace in paces.items()}
    found = AgentRow.objects.filter(instance_id__in=ids, revoked_at=None).values_list(*_AGENT_COLUMNS)
    for pk, heartbeat, enrolled, version, state, detail, since, skew, queued, interval, report in found:
        agents[pk] = Agent(heartbeat or enrolled, version, state, detail, since, skew, queued)
        brief = AgentBrief("", version, state, detail, interval, report)
        stale[pk] = limits_for(brief, paces.get(pk, 0)).stale_after
    return agents, stale


def _accounts(team: Team) -> tuple[Account, ...]:
    found = ProviderAccount.objects.filter(team=team, disconnected_at=None).order_by("pk")
    return tuple(
        Account(
            pk=account.pk,
            name=account.name,
            currency=account.currency,
            reads=account.enabled and can(account, Capability.LIST),
            failures=account.failures,
            error_kind=account.error_kind,
            failed_at=account.failed_at,
            listed_at=account.listed_at,
            interval_seconds=account.poll_interval_seconds,
        )
        for account in found.defer("credentials")
    )
