"""The course of one alert in memory: what findings, evidence and time make of it, and the events that come of that.

        finding           worse, more             evidence that lasts
    ──────────────► open ─────────────► open ──────────────────────► closed
                     ▲                                                  │ finding within REOPEN_WITHIN
                     └──────────────────────────────────────────────────┘ the third time: flapping

Nothing here reads or writes the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from fleet.alerts.causes import cause_of
from fleet.alerts.findings import RANKS, Finding, Part, at_stake, worst
from fleet.alerts.models import Alert, AlertEvent, AlertEventKind, MaintenanceWindow, Quiet, Signal
from fleet.alerts.windows import covering
from fleet.teams.models import User

Kind = AlertEventKind
# An alert that comes back so soon is the same alert.
REOPEN_WITHIN = timedelta(hours=1)
# From so many comings back within that time it comes and goes: it stays open until it has been quiet for FLAP_QUIET.
FLAPS_AFTER = 3
FLAP_QUIET = timedelta(minutes=30)
# An outage takes a few evaluations until all that belongs to it has come in: that is no news.
SETTLING = timedelta(minutes=2)
# What gets better has to stay so for as long: a value that sways around a limit is one message.
EASES_AFTER = timedelta(minutes=5)
NO_TIME = timedelta(0)

_ACTS = frozenset({Kind.ACKNOWLEDGED, Kind.SNOOZED, Kind.ESCALATED})
# What asks for somebody.
_ASKS = frozenset({Kind.OPENED, Kind.REOPENED, Kind.FLAPPING, Kind.WORSENED, Kind.WOKE})
# Quiet while somebody works on it.
_REPEATS = frozenset({Kind.SIGNAL, Kind.IMPROVED, Kind.REMINDED})
# Quiet while it comes and goes.
_COMINGS = frozenset({Kind.REOPENED, Kind.SIGNAL, Kind.IMPROVED})


@dataclass
class Course:
    """One alert with its open signals. `came`: kinds of signals that were not there before; `begins`: opened or opened again."""

    alert: Alert
    windows: Sequence[MaintenanceWindow] = ()
    signals: dict[Part, Signal] = field(default_factory=dict)
    begins: bool = False
    # Kinds of signals that this course of the alert had before.
    known: frozenset[str] = frozenset()
    came: list[Part] = field(default_factory=list)
    why: str = ""
    new_signals: list[Signal] = field(default_factory=list)
    changed_signals: dict[Part, Signal] = field(default_factory=dict)
    events: list[AlertEvent] = field(default_factory=list)
    changed: bool = False

    def take(self, finding: Finding, now: datetime, *, since: datetime, easing: timedelta = NO_TIME) -> None:
        """A finding that fires: its signal opens, or is brought up to date. A lower severity holds once it has lasted for `easing`."""
        signal = self.signals.get(finding.part)
        if signal is None:
            self._open_signal(finding, since)
        elif _update(signal, finding, *_eased(signal, finding, now, easing)):
            self.changed_signals[finding.part] = signal
            self.changed = True

    def release(self, part: Part, now: datetime, *, lasting: timedelta = NO_TIME, why: str = "evidence") -> None:
        """Evidence that one signal is over. It is cleared when the evidence has lasted; an alert that flaps wants more of it."""
        signal = self.signals.get(part)
        if signal is None:
            return
        if signal.clear_since is None:
            signal.clear_since = now
            self.changed_signals[part] = signal
        lasting = max(lasting, FLAP_QUIET) if self.alert.flapping and why == "evidence" else lasting
        if now - signal.clear_since >= lasting:
            signal.cleared_at = now
            self.changed_signals[part] = self.signals.pop(part)
            self.changed = True
            self.why = why

    def renew(self, values: Mapping[str, Any]) -> None:
        """Its signals say this too from now on."""
        for part, signal in self.signals.items():
            signal.values = {**signal.values, **values}
            self.changed_signals[part] = signal
            self.changed = True

    def settle(self, now: datetime) -> None:
        """After all that was taken and released: what it comes to, and whom to tell what. Does nothing where nothing changed."""
        if not self.changed or not self.alert.is_open:
            return
        if not self.signals:
            self._close(now)
            return
        severity = worst(signal.severity for signal in self.signals.values())
        was, self.alert.severity = self.alert.severity, severity
        self.known = frozenset() if self.begins else frozenset(self.alert.evidence.get("kinds", ()))
        self._weigh(now)
        if self.begins:
            self._begin(now)
        elif RANKS[severity] > RANKS[was]:
            self._worsen(now, was)
        elif RANKS[severity] < RANKS[was]:
            self.note(Kind.IMPROVED, now, was=was)
        elif self.came:
            self._grow(now)

    def note(self, kind: AlertEventKind, now: datetime, **values: Any) -> AlertEvent:
        """An event as of now. The alert knows afterwards when somebody was last told."""
        event = AlertEvent(
            alert=self.alert,
            at=now,
            kind=kind,
            severity=self.alert.severity,
            quiet=self._quiet(kind, now),
            values=values,
        )
        if event.quiet == Quiet.NO and kind not in _ACTS:
            self.alert.announced_at = self.alert.announced_at or now
            self.alert.reminded_at = now
        elif event.quiet == Quiet.MAINTENANCE and kind in _ASKS:
            # Told when the window ends.
            self.alert.announced_at = None
        self.alert.changed_at = now
        self.events.append(event)
        self.changed = True
        return event

    def is_covered(self) -> bool:
        """Whether a maintenance window keeps it quiet now."""
        return cause_of(self.alert.cause).quietable and covering(self.windows, self.alert) is not None

    def escalate(self, now: datetime, person: User | None = None, **values: Any) -> AlertEvent:
        """To the person, or to whoever stands behind the first readers."""
        self.alert.escalated_at, self.alert.escalated_to = now, person
        named = {"to": person.display_name, "person": person.pk} if person else {}
        return self.note(Kind.ESCALATED, now, **named, **values)

    def wake(self, now: datetime, why: str) -> AlertEvent:
        self._end_snooze()
        return self.note(Kind.WOKE, now, why=why)

    def let_go(self) -> None:
        """Nobody works on it any more."""
        self.alert.acknowledged_at = self.alert.acknowledged_by = None
        self.alert.acknowledged_note = ""

    def _end_snooze(self) -> None:
        alert = self.alert
        alert.snoozed_at = alert.snoozed_until = alert.snoozed_by = None
        alert.snoozed_at_severity = ""

    def _is_snoozed_on(self, now: datetime) -> bool:
        """An alert that comes back within its snooze, no worse, was asked to be quiet about."""
        alert = self.alert
        lasts = alert.snoozed_until is None or alert.snoozed_until > now
        return alert.snoozed_at is not None and lasts and RANKS[alert.severity] <= RANKS[alert.snoozed_at_severity]

    def _open_signal(self, finding: Finding, since: datetime) -> None:
        signal = Signal(alert=self.alert, kind=finding.kind, detail=finding.detail, since=since)
        _update(signal, finding, finding.severity, None)
        self.signals[finding.part] = signal
        self.new_signals.append(signal)
        self.came.append(finding.part)
        self.changed = True

    def _begin(self, now: datetime) -> None:
        alert = self.alert
        if not self._is_snoozed_on(now):
            self._end_snooze()
        if not alert.reopened:
            self.note(Kind.OPENED, now)
        elif alert.reopened >= FLAPS_AFTER and not alert.flapping:
            alert.flapping = True
            self.note(Kind.FLAPPING, now, times=alert.reopened)
        else:
            self.note(Kind.REOPENED, now, times=alert.reopened)

    def _worsen(self, now: datetime, was: str) -> None:
        alert = self.alert
        # Whoever said that they work on it meant less than this.
        self.let_go()
        if alert.is_snoozed and RANKS[alert.severity] > RANKS[alert.snoozed_at_severity]:
            self.wake(now, "worse")
        else:
            self.note(Kind.WORSENED, now, was=was)

    def _grow(self, now: datetime) -> None:
        if self.alert.is_snoozed and self._new_kinds():
            self.wake(now, "signal")
        else:
            kinds = sorted({kind for kind, _detail in self.came})
            self.note(Kind.SIGNAL, now, kinds=kinds, count=len(self.came))

    def _new_kinds(self) -> set[str]:
        """Rules that joined. One more GPU with the trouble that another has, or a rule that joins again, is on record, and no news to anybody."""
        known = {kind for kind, detail in self.signals if (kind, detail) not in self.came}
        return {kind for kind, _detail in self.came} - known - self.known

    def _close(self, now: datetime) -> None:
        alert = self.alert
        alert.closed_at, alert.closed_why = now, self.why
        self.note(Kind.RESOLVED, now, why=self.why)
        alert.flapping = False

    def _weigh(self, now: datetime) -> None:
        """Evidence and money, by the signals that are open."""
        signals = list(self.signals.values())
        first = max(signals, key=lambda signal: (RANKS[signal.severity], -signal.since.timestamp()))
        self.alert.evidence = {
            "kind": first.kind,
            "detail": first.detail,
            "values": first.values,
            "signals": len(signals),
            "scopes": len({signal.scope for signal in signals}),
            "kinds": sorted(self.known | {signal.kind for signal in signals}),
        }
        self._begin_earlier(min(self.alert.since, *(signal.since for signal in signals)))
        amounts = self._at_stake(signals)
        if len(amounts) > 1:
            # Money is not added across currencies, so what is at stake is no one number.
            self.alert.evidence["at_stake"] = {currency: str(amount) for currency, amount in sorted(amounts.items())}
        self._price(now, next(iter(amounts.values())) if len(amounts) == 1 else None, signals)

    def _begin_earlier(self, since: datetime) -> None:
        """It was found out later than it began: what it cost counts from where it began."""
        alert = self.alert
        if alert.priced_from is not None and alert.priced_from == alert.since and not alert.money_before:
            alert.priced_from = since
        alert.since = since

    def _at_stake(self, signals: Sequence[Signal]) -> dict[str, Decimal]:
        """An hour's money by currency; none where no price is known."""
        by_currency: dict[str, list[tuple[str, Decimal | None]]] = {}
        for signal in signals:
            if signal.price_per_hour is not None:
                by_currency.setdefault(signal.currency, []).append((signal.scope, signal.price_per_hour))
        found = {currency: at_stake(parts) for currency, parts in by_currency.items()}
        return {currency: amount for currency, amount in found.items() if amount is not None}

    def _price(self, now: datetime, price: Decimal | None, signals: Sequence[Signal]) -> None:
        """A price that changes counts from now on; what was spent until then stays."""
        alert = self.alert
        if price == alert.price_per_hour and alert.priced_from is not None:
            return
        if alert.price_per_hour is not None:
            alert.money_before = alert.money_so_far(now) or Decimal(0)
        alert.priced_from = now if alert.priced_from is not None else alert.since
        alert.price_per_hour = price
        alert.currency = next((signal.currency for signal in signals if signal.currency), alert.currency)

    def _quiet(self, kind: AlertEventKind, now: datetime) -> Quiet:
        """The first reason that there is."""
        alert = self.alert
        ends, unheard = kind == Kind.RESOLVED, alert.announced_at is None
        reasons = (
            (Quiet.NO, kind in _ACTS),
            (Quiet.FOLDED, ends and self.why == "folded"),
            (Quiet.MAINTENANCE, (ends and unheard) or self.is_covered()),
            (Quiet.JOINED, kind == Kind.SIGNAL and (now - alert.opened_at < SETTLING or not self._new_kinds())),
            (Quiet.SNOOZED, alert.snoozed_at is not None and kind != Kind.WOKE),
            (Quiet.ACKNOWLEDGED, alert.acknowledged_at is not None and kind in _REPEATS),
            (Quiet.FLAPPING, alert.flapping and kind in _COMINGS),
        )
        return next((reason for reason, holds in reasons if holds), Quiet.NO)


def _eased(signal: Signal, finding: Finding, now: datetime, easing: timedelta) -> tuple[str, datetime | None]:
    """The signal's severity now, and since when it would be lower: while that has not lasted, the higher one holds."""
    if RANKS[finding.severity] >= RANKS[signal.severity]:
        return finding.severity, None
    since = signal.eased_since or now
    return (finding.severity, None) if now - since >= easing else (signal.severity, since)


def _update(signal: Signal, finding: Finding, severity: str, eased_since: datetime | None) -> bool:
    """Whether anything of it is not as it was."""
    told = {
        "severity": severity,
        "eased_since": eased_since,
        "scope": finding.scope,
        "price_per_hour": finding.price_per_hour,
        "currency": finding.currency,
        "values": finding.values,
        "clear_since": None,
    }
    changed = [name for name, value in told.items() if getattr(signal, name) != value]
    for name in changed:
        setattr(signal, name, told[name])
    return bool(changed)
