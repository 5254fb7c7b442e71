"""A team's fleet as of now: its machines, cut into bands, keys and money. Made once a request, with a constant number of queries."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property

from django.db.models import Prefetch, QuerySet
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, npgettext

from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.prices import Burn, burn
from fleet.pages.blocks import Blocks
from fleet.pages.machine import ORDER, MachineView
from fleet.pages.money import total
from fleet.providers.base import InstanceState
from fleet.providers.registry import adapters
from fleet.states import IDLE_MONEY, GpuState
from fleet.teams.access import TeamRequest
from fleet.teams.models import Team
from fleet.telemetry.latest import machines_now

# Up to so many GPUs, tiles are drawn this large; above, the whole fleet still fits one screen.
DENSITIES = ((32, "xl"), (160, "l"), (320, "m"), (640, "s"))


# Columns of a machine that no list shows, and of its account.
ONLY_ON_ONES_OWN_PAGE = (
    *("extra", "ssh", "labels", "provider_labels", "image_name", "raw_state", "state_reason"),
    *("provider_created_at", "started_at", "provider_stopped_at", "expires_at", "last_seen_at"),
)


def shown_instances(team: Team) -> QuerySet[Instance]:
    """What is rented now: not what left the listings, nor what its provider has ended."""
    rows = Instance.objects.filter(team=team, gone_at=None).exclude(state=InstanceState.TERMINATED)
    # A handful of accounts, people and projects, each made once instead of once a machine.
    accounts = ProviderAccount.objects.defer("options", "credentials", "check_results")
    rows = rows.prefetch_related(Prefetch("account", accounts), "owner", "project").defer(*ONLY_ON_ONES_OWN_PAGE)
    return rows.order_by("account__name", "name", "pk")


@dataclass(frozen=True)
class Group:
    """Machines counted together: a band, a state, a project, the whole fleet."""

    machines: list[MachineView]

    @cached_property
    def gpu_count(self) -> int:
        return sum(len(view.tiles) for view in self.machines)

    @cached_property
    def burn(self) -> Burn:
        return burn(view.instance for view in self.machines)

    @property
    def amounts(self) -> dict[str, Decimal]:
        """What the machines cost an hour now, by currency."""
        return self.burn.amounts

    @property
    def unpriced(self) -> int:
        return self.burn.unpriced

    def count(self, state: GpuState) -> int:
        return sum(view.counts.get(state, 0) for view in self.machines)

    def share(self, states: Iterable[GpuState]) -> dict[str, Decimal]:
        """The money that falls to GPUs in these states."""
        wanted = frozenset(states)
        sums = (
            {currency: sum((money[state] for state in wanted), Decimal(0))}
            for currency, money in self.money_by_state.items()
        )
        return total(sums)

    @cached_property
    def money_by_state(self) -> dict[str, dict[GpuState, Decimal]]:
        """Currency -> state -> what an hour of the GPUs in it costs, of machines with a price."""
        sums: dict[str, dict[GpuState, Decimal]] = {}
        for view in self.machines:
            if view.price is None or not view.tiles:
                continue
            money = sums.setdefault(view.instance.currency, dict.fromkeys(GpuState, Decimal(0)))
            for state, count in view.counts.items():
                money[state] += view.price * count / len(view.tiles)
        return sums

    @cached_property
    def idle_amounts(self) -> dict[str, Decimal]:
        return self.share(IDLE_MONEY)

    @property
    def idles(self) -> bool:
        return any(self.idle_amounts.values())

    @cached_property
    def read_at(self) -> datetime | None:
        return max((view.read_at for view in self.machines if view.read_at), default=None)

    @cached_property
    def priced_at(self) -> datetime | None:
        """The oldest of the prices that are read by polling; typed ones do not age."""
        return burn(view.instance for view in self.machines if view.instance.account.kind != "manual").oldest_priced_at


@dataclass(frozen=True)
class Band(Group):
    """The machines of one account."""

    account: ProviderAccount
    label: str
    writer: Blocks

    @property
    def blocks(self) -> SafeString:
        return self.writer.html(self.machines)


@dataclass(frozen=True)
class Key:
    """One state of the map's key: how many GPUs, and their money."""

    state: GpuState
    count: int
    amounts: dict[str, Decimal]


@dataclass(frozen=True)
class Fleet(Group):
    team: Team
    at: datetime

    @cached_property
    def density(self) -> str:
        return next((name for limit, name in DENSITIES if self.gpu_count <= limit), "xs")

    @cached_property
    def bands(self) -> list[Band]:
        """Largest bill first; accounts of the same provider are told apart by their names."""
        by_account: dict[int, list[MachineView]] = {}
        for view in self.machines:
            by_account.setdefault(view.instance.account_id, []).append(view)
        accounts = [views[0].instance.account for views in by_account.values()]
        kinds = [account.kind for account in accounts]
        writer = Blocks(self.team.slug)
        bands = [
            Band(by_account[account.pk], account, band_label(account, alone=kinds.count(account.kind) == 1), writer)
            for account in accounts
        ]
        return sorted(bands, key=lambda band: -sum(band.amounts.values(), Decimal(0)))

    @cached_property
    def providers(self) -> int:
        return len({view.provider for view in self.machines})

    @property
    def size_words(self) -> str:
        """How large the fleet is, in one phrase."""
        machines, providers = len(self.machines), self.providers
        return _("%(gpus)s on %(machines)s, %(providers)s") % {
            "gpus": npgettext("fleet", "%(n)d GPU", "%(n)d GPUs", self.gpu_count) % {"n": self.gpu_count},
            "machines": ngettext("%(n)d machine", "%(n)d machines", machines) % {"n": machines},
            "providers": ngettext("%(n)d provider", "%(n)d providers", providers) % {"n": providers},
        }

    @cached_property
    def keys(self) -> list[Key]:
        return [Key(state, self.count(state), self.share({state})) for state in ORDER]

    @cached_property
    def bar(self) -> list[tuple[GpuState, str]]:
        """Percent of the hourly money by state; of the GPUs where currencies differ, because money is not added across them."""
        weights = {key.state: float(sum(key.amounts.values())) for key in self.keys}
        if len(self.amounts) != 1 or not sum(weights.values()):
            weights = {key.state: float(key.count) for key in self.keys}
        whole = sum(weights.values()) or 1.0
        return [(state, f"{100 * weight / whole:.2f}") for state, weight in weights.items() if weight]


def band_label(account: ProviderAccount, *, alone: bool) -> str:
    adapter = adapters().get(account.kind)
    return _(adapter.label) if adapter and alone and account.kind != "manual" else account.name


def load_fleet(*, team: Team, now: datetime) -> Fleet:
    views = [MachineView(machine, now) for machine in machines_now(shown_instances(team), now=now, brief=True)]
    return Fleet(views, team, now)


def fleet_of(request: TeamRequest) -> Fleet:
    """The fleet of the page's team; strip, map and totals of one page are the same reading."""
    loaded: Fleet | None = getattr(request, "_fleet", None)
    if loaded is None:
        loaded = load_fleet(team=request.team, now=timezone.now())
        request._fleet = loaded  # type: ignore[attr-defined]  # noqa: SLF001
    return loaded
