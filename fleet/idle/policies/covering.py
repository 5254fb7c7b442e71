"""By which policy each machine is judged: the first of its team, by position, that covers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from fleet.costs.attribution.models import AttributionSpan
from fleet.idle.policies.models import IdleAction, IdlePolicy, IdleWindowFrom, MachineUse
from fleet.idle.policies.thresholds import limits_of
from fleet.idle.verdict.evidence import Mode
from fleet.idle.verdict.limits import Limits
from fleet.idle.verdict.verdict import SHORTEST
from fleet.inventory.models import Instance, ProviderAccount
from fleet.providers.base import InstanceState
from fleet.telemetry.models import HostLatest

DEFAULT_WINDOW = timedelta(minutes=60)


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """`policy` None: no policy covers the machine; it is judged by defaults, and nothing is told or done."""

    policy: IdlePolicy | None = None
    window: timedelta = DEFAULT_WINDOW
    mode: Mode = Mode.INTERACTIVE
    limits: Limits = field(default_factory=Limits)


def judged_by(machines: Sequence[Instance]) -> dict[int, JudgedBy]:
    """By the machine's id. Six queries at most, however many machines, teams and policies there are."""
    teams = {machine.team_id for machine in machines}
    policies = standing_policies(teams)
    known = _Known.of(machines, policies)
    uses = MachineUse.objects.exclude(mode="").filter(instance__team__in=teams)
    modes = dict(uses.values_list("instance", "mode"))
    cores = cores_of(machines)
    ways: dict[tuple[int | None, str, int | None, float | None], JudgedBy] = {}
    found = {}
    for machine in machines:
        policy = known.first(machine, policies.get(machine.team_id, ()))
        mode = modes.get(machine.pk, "")
        own = own_minutes(policy, machine.pk) if policy else None
        key = (policy.pk if policy else None, mode, own, cores.get(machine.pk))
        if key not in ways:
            ways[key] = way_of(policy, mode, own, cores.get(machine.pk))
        found[machine.pk] = ways[key]
    return found


def way_of(policy: IdlePolicy | None, mode: str = "", own: int | None = None, cores: float | None = None) -> JudgedBy:
    """`mode`: what people said of the machine itself, which outweighs the policy's. `own`: minutes that history recommends for it alone.

    `cores`: what its CPU percent is of. A serving engine spins on its cores while it waits: there only the percent counts.
    """
    used = Mode(mode or (policy.mode if policy else Mode.INTERACTIVE))
    limits = limits_of(policy.limits) if policy else Limits()
    limits = limits if used is Mode.SERVING else limits.on(cores)
    return JudgedBy(policy, window_of(policy, own) if policy else DEFAULT_WINDOW, used, limits)


def own_minutes(policy: IdlePolicy, machine_id: int) -> int | None:
    """Only where history recommends to stop at all, and a window of its own did better for this machine."""
    if policy.window_from != IdleWindowFrom.RECOMMENDED or policy.recommended_minutes is None:
        return None
    own = policy.recommendation.get("own", {}).get(str(machine_id))
    return own and int(own["minutes"])


def window_of(policy: IdlePolicy, own: int | None = None) -> timedelta:
    """While history recommends nothing, the fixed time: it is judged and shown, and `stops` says no."""
    minutes = policy.window_minutes
    if policy.window_from == IdleWindowFrom.RECOMMENDED:
        minutes = own or policy.recommended_minutes or minutes
    return max(timedelta(minutes=minutes), SHORTEST)


def stops(policy: IdlePolicy | None) -> bool:
    """Whether anything is done to its machines, beyond telling that they are idle."""
    if policy is None or not policy.enabled or policy.removed_at is not None or policy.action == IdleAction.ALERT:
        return False
    return policy.window_from != IdleWindowFrom.RECOMMENDED or policy.recommended_minutes is not None


def machines_of(policy: IdlePolicy) -> list[Instance]:
    """Those there now that it covers, whether or not another policy comes first; also of one that is not saved, or switched off."""
    rows = Instance.objects.filter(team=policy.team_id, gone_at=None).exclude(state=InstanceState.TERMINATED)
    machines = list(rows.select_related("account").order_by("name", "pk"))
    known = _Known.of(machines, {policy.team_id: [policy]})
    return [machine for machine in machines if known.first(machine, [policy]) is not None]


def standing_policies(teams: Iterable[int]) -> dict[int, list[IdlePolicy]]:
    """By team, in the order in which they count."""
    found: dict[int, list[IdlePolicy]] = {}
    rows = IdlePolicy.objects.filter(team__in=set(teams), enabled=True, removed_at=None)
    for policy in rows.order_by("position", "pk"):
        found.setdefault(policy.team_id, []).append(policy)
    return found


@dataclass(frozen=True, slots=True)
class _Known:
    """What scopes are held against, beside the machine's own columns."""

    excluded: set[tuple[int, int]]
    providers: Mapping[int, str]
    projects: Mapping[int, int]

    @classmethod
    def of(cls, machines: Sequence[Instance], policies: Mapping[int, Sequence[IdlePolicy]]) -> _Known:
        every = [policy for some in policies.values() for policy in some]
        return cls(
            _excluded(every),
            _providers(machines) if any(policy.provider for policy in every) else {},
            _projects(machines) if any(policy.project_id for policy in every) else {},
        )

    def first(self, machine: Instance, policies: Iterable[IdlePolicy]) -> IdlePolicy | None:
        return next((policy for policy in policies if self._covers(policy, machine)), None)

    def _covers(self, policy: IdlePolicy, machine: Instance) -> bool:
        asked = (
            (policy.project_id, machine.project_id or self.projects.get(machine.pk)),
            (policy.account_id, machine.account_id),
            (policy.provider, self.providers.get(machine.account_id)),
            (policy.tenancy, machine.tenancy),
        )
        if any(wanted and wanted != value for wanted, value in asked):
            return False
        return _has_label(policy, machine) and (policy.pk, machine.pk) not in self.excluded


def _has_label(policy: IdlePolicy, machine: Instance) -> bool:
    """People's labels outweigh the provider's of the same name."""
    if not policy.label_name:
        return True
    value = {**machine.provider_labels, **machine.labels}.get(policy.label_name)
    return value is not None and policy.label_value in ("", str(value))


def _excluded(policies: Sequence[IdlePolicy]) -> set[tuple[int, int]]:
    kept = IdlePolicy.objects.filter(pk__in=[policy.pk for policy in policies if policy.pk], excluded__isnull=False)
    return set(kept.values_list("pk", "excluded"))


def _providers(machines: Sequence[Instance]) -> dict[int, str]:
    accounts = {machine.account_id for machine in machines}
    return dict(ProviderAccount.objects.filter(pk__in=accounts).values_list("pk", "kind"))


def _projects(machines: Sequence[Instance]) -> dict[int, int]:
    """What rules of attribution gave to machines that nobody gave to a project by hand."""
    without = [machine.pk for machine in machines if machine.project_id is None]
    spans = AttributionSpan.objects.filter(instance__in=without, project__isnull=False, period__upper_inf=True)
    return dict(spans.values_list("instance", "project"))


def cores_of(machines: Sequence[Instance]) -> dict[int, float]:
    """How many each may use: its container's limit, else what its provider lists."""
    rows = HostLatest.objects.filter(instance__in=[machine.pk for machine in machines])
    told = rows.values_list("instance", "cpu_limit_cores", "instance__vcpus")
    return {pk: float(cores) for pk, limit, listed in told if (cores := limit or listed)}
