"""An alert as pages show it: its words, its machine as it is now, the signals folded under it, and who was told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from django.db.models import Count, F, Q, Window
from django.db.models.functions import RowNumber
from django.utils.translation import gettext as _

from fleet.alerts.causes import cause_of
from fleet.alerts.channels.models import Delivery, DeliveryState
from fleet.alerts.escalation import policy_of
from fleet.alerts.models import Alert, AlertEvent, AlertEventKind, EscalationPolicy, Severity, Signal
from fleet.alerts.places import Place, machine_place, place_of, provider_name
from fleet.alerts.words import closed_words, remedy_of, signal_words, title_of, why_of
from fleet.formats import money_text
from fleet.inventory.models import Instance, ProviderAccount
from fleet.states import GpuState
from fleet.teams.actor_words import actor_text
from fleet.teams.models import User
from fleet.telemetry.latest import MachineNow, machines_now
from fleet.words import state_word

# A burst of XIDs is one line of the page, not hundreds.
SIGNALS_SHOWN = 12
# What load_lines wants to come with alerts.
RELATED = ("team", "instance__account", "instance__owner", "account", "acknowledged_by", "snoozed_by", "escalated_to")


@dataclass
class Line:
    """`machine`: None where the alert is about no machine. `signals`: the first of those that fire, or, of a closed alert, that did; `signal_count`: how many they are.

    `told`: the newest message to each channel, newest first. `policy`: what the team wants of urgent alerts that nobody answers.
    """

    alert: Alert
    now: datetime
    machine: MachineNow | None = None
    signals: list[Signal] = field(default_factory=list)
    signal_count: int = 0
    told: list[Delivery] = field(default_factory=list)
    # What acknowledged it where no person with an account did.
    label: str = ""
    policy: EscalationPolicy | None = None

    @property
    def escalates_at(self) -> datetime | None:
        """When it does so by itself; None where it does not."""
        alert, after = self.alert, self.policy.after if self.policy else None
        waits = alert.is_open and not alert.is_snoozed and alert.acknowledged_at is None and alert.escalated_at is None
        if after is None or alert.announced_at is None or alert.severity != Severity.URGENT or not waits:
            return None
        return alert.announced_at + after

    @cached_property
    def title(self) -> str:
        return title_of(self.alert)

    @cached_property
    def remedy(self) -> str:
        return remedy_of(self.alert)

    @property
    def acknowledged_by(self) -> str:
        person = self.alert.acknowledged_by
        return person.display_name if person else actor_text(self.label) or _("a script")

    @property
    def closed_why(self) -> str:
        return closed_words(self.alert)

    @property
    def account(self) -> ProviderAccount | None:
        instance = self.alert.instance
        return instance.account if instance else self.alert.account

    @property
    def mark(self) -> GpuState | None:
        """What its GPUs are in, where that is what it says; else its severity is drawn."""
        return cause_of(self.alert.cause).state

    @property
    def state(self) -> GpuState | None:
        return self.machine.state if self.machine else None

    @property
    def place(self) -> str:
        """The state in words and where it is."""
        if self.alert.instance is not None:
            word = state_word(self.state) if self.state else ""
            return ", ".join(part for part in (word, machine_place(self.alert.instance)) if part)
        return provider_name(self.alert.account) if self.alert.account else ""

    @property
    def about(self) -> Place | None:
        return place_of(self.alert.subject)

    @cached_property
    def read_at(self) -> datetime | None:
        if self.machine is None:
            return None
        host = [self.machine.host.sampled_at] if self.machine.host else []
        return max((*host, *(gpu.latest.sampled_at for gpu in self.machine.gpus if gpu.latest)), default=None)

    @property
    def period_seconds(self) -> int:
        agent = self.machine.agent if self.machine else None
        return agent.report_seconds if agent else 10

    @property
    def evidence(self) -> str:
        return why_of(self.alert) if self.alert.evidence else ""

    @property
    def so_far(self) -> str:
        """What was spent while it lasted; "" where no price is known."""
        spent = self.alert.money_so_far(self.now)
        return "" if spent is None else money_text(spent, self.alert.currency)

    @property
    def shown_signals(self) -> list[tuple[Signal, str]]:
        """With their words."""
        return [(signal, signal_words(signal)) for signal in self.signals]

    @property
    def hidden_signals(self) -> int:
        return self.signal_count - len(self.signals)


def load_lines(alerts: Sequence[Alert], *, now: datetime, reader: User | None = None) -> list[Line]:
    """`alerts` are of one team and come with what is RELATED. Of messages to personal channels the reader sees their own. Ten queries at most, however many there are."""
    machines = _machines_of([alert.instance for alert in alerts if alert.instance], now)
    signals, told = _signals_of(alerts), _told_of(alerts, reader)
    policy = policy_of(alerts[0].team) if alerts else None
    labels = _labels_of(alerts)
    return [
        Line(
            alert,
            now,
            machines.get(alert.instance_id or 0),
            *signals.get(alert.pk, ([], 0)),
            told.get(alert.pk, []),
            labels.get(alert.pk, ""),
            policy,
        )
        for alert in alerts
    ]


def _machines_of(instances: Iterable[Instance], now: datetime) -> Mapping[int, MachineNow]:
    once = {instance.pk: instance for instance in instances}
    return {found.instance.pk: found for found in machines_now(list(once.values()), now=now, brief=True)}


def _signals_of(alerts: Sequence[Alert]) -> Mapping[int, tuple[list[Signal], int]]:
    """The first few and their number; an outage has one for each of its machines."""
    fires = Q(cleared_at=None) | Q(alert__closed_at__isnull=False)
    rows = Signal.objects.filter(fires, alert__in=[alert.pk for alert in alerts]).annotate(
        row=Window(RowNumber(), partition_by=F("alert"), order_by=["since", "pk"]),
        total=Window(Count("pk"), partition_by=F("alert")),
    )
    found: dict[int, tuple[list[Signal], int]] = {}
    for signal in rows.filter(row__lte=SIGNALS_SHOWN).order_by("since", "pk"):
        found.setdefault(signal.alert_id, ([], signal.total))[0].append(signal)
    return found


def _labels_of(alerts: Sequence[Alert]) -> Mapping[int, str]:
    """What acknowledged those that no person with an account did: links and tokens."""
    by_others = [alert.pk for alert in alerts if alert.acknowledged_at and alert.acknowledged_by_id is None]
    if not by_others:
        return {}
    rows = AlertEvent.objects.filter(alert__in=by_others, kind=AlertEventKind.ACKNOWLEDGED).order_by("at", "pk")
    return dict(rows.values_list("alert_id", "actor_label"))


def _told_of(alerts: Sequence[Alert], reader: User | None) -> Mapping[int, list[Delivery]]:
    """Messages that went out or could not; those that wait are nobody's news yet."""
    over = (DeliveryState.SENT, DeliveryState.FAILED, DeliveryState.DEAD)
    seen = Q(channel__owner=None) | Q(channel__owner=reader) if reader else Q(channel__owner=None)
    rows = Delivery.objects.filter(seen, alert__in=[alert.pk for alert in alerts], state__in=over)
    found: dict[int, list[Delivery]] = defaultdict(list)
    for row in (
        rows.select_related("channel")
        .order_by("alert_id", "channel_id", "-created_at")
        .distinct("alert_id", "channel_id")
    ):
        assert row.alert_id is not None
        found[row.alert_id].append(row)
    return {pk: sorted(told, key=lambda row: row.created_at, reverse=True) for pk, told in found.items()}
