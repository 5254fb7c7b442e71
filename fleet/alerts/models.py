"""Alerts and what is folded under them, the rules of a team, and the windows in which messages keep quiet."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

__all__ = [
    "Alert",
    "AlertEvent",
    "AlertEventKind",
    "AlertProgress",
    "EscalationPolicy",
    "MaintenanceWindow",
    "PendingSignal",
    "Quiet",
    "Rule",
    "Severity",
    "Signal",
]

SECONDS_PER_HOUR = 3_600


class Severity(models.TextChoices):
    """Worst first."""

    URGENT = "urgent", _("Urgent")
    WARNING = "warning", _("Warning")
    NOTE = "note", _("Note")

    @property
    def rank(self) -> int:
        """Higher is worse."""
        return len(Severity) - list(Severity).index(self)


class AlertEventKind(models.TextChoices):
    OPENED = "opened", _("Opened")
    SIGNAL = "signal", _("One more signal")
    WORSENED = "worsened", _("Got worse")
    IMPROVED = "improved", _("Got better")
    ACKNOWLEDGED = "acknowledged", _("Acknowledged")
    SNOOZED = "snoozed", _("Snoozed")
    WOKE = "woke", _("Came back")
    ESCALATED = "escalated", _("Escalated")
    REMINDED = "reminded", _("Reminded")
    FLAPPING = "flapping", _("Comes and goes")
    RESOLVED = "resolved", _("Resolved")
    REOPENED = "reopened", _("Opened again")


class Quiet(models.TextChoices):
    """Why nobody is told of an event. The record has it all the same."""

    NO = "", _("told")
    MAINTENANCE = "maintenance", _("maintenance")
    SNOOZED = "snoozed", _("snoozed")
    FLAPPING = "flapping", _("comes and goes")
    FOLDED = "folded", _("part of a larger alert")
    JOINED = "joined", _("part of what was told")
    ACKNOWLEDGED = "acknowledged", _("somebody works on it")


class Alert(models.Model):
    """One cause on one subject, from when it was raised until evidence shows that it is over.

    `subject` is stable text ("instance:17", "account:3"); at most one alert of a (team, cause, subject) is open.
    `evidence` holds values for its words, which are made in the reader's language (words.py).
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="alerts")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, null=True, related_name="alerts")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, null=True, related_name="alerts")
    cause = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    severity = models.CharField(max_length=8, choices=Severity)
    # When it began by the evidence; an alert is opened later, when it has lasted for long enough.
    since = models.DateTimeField(default=timezone.now)
    opened_at = models.DateTimeField(default=timezone.now)
    changed_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True)
    closed_why = models.CharField(max_length=40, blank=True)
    # A person put the note away while its rule went on firing: it stays away until the rule stopped.
    dismissed = models.BooleanField(default=False)
    # The first event that anybody was told of; NULL: all so far fell into a maintenance window.
    announced_at = models.DateTimeField(null=True)
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    acknowledged_note = models.CharField(max_length=300, blank=True)
    # Snoozed while `snoozed_at` is set: until `snoozed_until`, or, where that is NULL, until it gets worse.
    snoozed_at = models.DateTimeField(null=True)
    snoozed_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    snoozed_until = models.DateTimeField(null=True)
    snoozed_at_severity = models.CharField(max_length=8, choices=Severity, blank=True)
    # To `escalated_to`, who then hears all of it on their own channels; NULL: to whoever stands behind the first readers.
    escalated_at = models.DateTimeField(null=True)
    escalated_to = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    reminded_at = models.DateTimeField(null=True)
    flapping = models.BooleanField(default=False)
    reopened = models.PositiveIntegerField(default=0)
    # Money at stake, an hour; NULL = not known, which is not nothing.
    price_per_hour = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    currency = models.CharField(max_length=3, blank=True)
    # What was spent before `priced_from`, the moment from which `price_per_hour` holds.
    money_before = models.DecimalField(max_digits=16, decimal_places=6, default=Decimal(0))
    priced_from = models.DateTimeField(null=True)
    evidence = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "team", "cause", "subject", name="alert_open_once", condition=models.Q(closed_at__isnull=True)
            )
        ]
        indexes = [
            models.Index(fields=["team", "-opened_at"], name="alert_team_opened"),
            models.Index(fields=["team", "-closed_at"], name="alert_team_closed"),
            models.Index(fields=["instance", "-opened_at"], name="alert_instance_opened"),
            models.Index(fields=["team"], name="alert_dismissed", condition=models.Q(dismissed=True)),
        ]

    def __str__(self) -> str:
        return f"{self.cause} of {self.subject}"

    @property
    def is_open(self) -> bool:
        return self.closed_at is None

    @property
    def is_snoozed(self) -> bool:
        return self.closed_at is None and self.snoozed_at is not None

    @property
    def snoozes_until_worse(self) -> bool:
        return self.is_snoozed and self.snoozed_until is None

    def money_so_far(self, now: datetime) -> Decimal | None:
        """What was spent while it lasted, in `currency`; None where no price was ever known."""
        if self.price_per_hour is None or self.priced_from is None:
            return self.money_before or None
        seconds = max(0.0, ((self.closed_at or now) - self.priced_from).total_seconds())
        return self.money_before + self.price_per_hour * Decimal(str(seconds)) / SECONDS_PER_HOUR


class Signal(models.Model):
    """One rule that fires for one part of the subject, folded under its alert. `detail` names the part: "GPU-a", "xid 79".

    `price_per_hour` is what this signal puts at stake; signals of one `scope` ("gpu:3") put the same money at stake, and
    those of the empty scope all of the subject's.
    """

    alert = models.ForeignKey("fleet.Alert", on_delete=models.CASCADE, related_name="signals")
    kind = models.CharField(max_length=60)
    detail = models.CharField(max_length=200, blank=True)
    severity = models.CharField(max_length=8, choices=Severity)
    scope = models.CharField(max_length=60, blank=True)
    price_per_hour = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    currency = models.CharField(max_length=3, blank=True)
    since = models.DateTimeField()
    # The evidence that it is over has to last; NULL: it fires.
    clear_since = models.DateTimeField(null=True)
    # It fires at a lower severity since then, which has not lasted for long enough to hold.
    eased_since = models.DateTimeField(null=True)
    cleared_at = models.DateTimeField(null=True)
    values = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                "alert", "kind", "detail", name="signal_open_once", condition=models.Q(cleared_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.detail} of {self.alert}"


class PendingSignal(models.Model):
    """A rule that fires and has not yet for as long as it must. The row goes when it opens a signal or stops firing."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    cause = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    kind = models.CharField(max_length=60)
    detail = models.CharField(max_length=200, blank=True)
    since = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint("team", "cause", "subject", "kind", "detail", name="pending_signal_once")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.detail} of {self.subject}"


class AlertEvent(models.Model):
    """What happened to an alert. Channels deliver these rows, where `quiet` gives no reason not to."""

    alert = models.ForeignKey("fleet.Alert", on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=16, choices=AlertEventKind)
    severity = models.CharField(max_length=8, choices=Severity)
    # NULL with an empty label: Rackrent itself.
    actor = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    actor_label = models.CharField(max_length=200, blank=True)
    quiet = models.CharField(max_length=16, choices=Quiet, blank=True)
    values = models.JSONField(default=dict)

    class Meta:
        indexes = [models.Index(fields=["alert", "at"], name="alert_event_at")]

    def __str__(self) -> str:
        return f"{self.kind} at {self.at:%Y-%m-%d %H:%M:%S}"


class Rule(models.Model):
    """What a team changed of a rule; where there is no row, its defaults hold (fleet/alerts/rules)."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="alert_rules")
    kind = models.CharField(max_length=60)
    enabled = models.BooleanField(default=True)
    severity = models.CharField(max_length=8, choices=Severity, null=True)  # noqa: DJ001  # NULL: the rule's own
    thresholds = models.JSONField(default=dict)
    for_seconds = models.PositiveIntegerField(null=True)
    changed_at = models.DateTimeField(default=timezone.now)
    changed_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint("team", "kind", name="alert_rule_once")]

    def __str__(self) -> str:
        return self.kind


class EscalationPolicy(models.Model):
    """What a team wants of urgent alerts that nobody answers; where there is no row, the defaults hold.

    `after_minutes`: since people were told; NULL: they do not escalate by themselves. `person` NULL: whoever stands behind the first readers.
    """

    team = models.OneToOneField("fleet.Team", on_delete=models.CASCADE, primary_key=True, related_name="+")
    after_minutes = models.PositiveSmallIntegerField(null=True, default=15)
    person = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    changed_at = models.DateTimeField(default=timezone.now)
    changed_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")

    def __str__(self) -> str:
        return f"escalation of {self.team}"

    @property
    def after(self) -> timedelta | None:
        return None if self.after_minutes is None else timedelta(minutes=self.after_minutes)


class MaintenanceWindow(models.Model):
    """[starts_at, ends_at): events of the machine, the account or the whole team are recorded and nobody is told."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="maintenance_windows")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, null=True, related_name="+")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, null=True, related_name="+")
    starts_at = models.DateTimeField(_("from"))
    ends_at = models.DateTimeField(_("until"))
    reason = models.CharField(_("reason"), max_length=200, blank=True)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    cancelled_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["team", "ends_at"], name="maintenance_team_ends")]
        constraints = [
            models.CheckConstraint(condition=models.Q(ends_at__gt=models.F("starts_at")), name="maintenance_has_length")
        ]

    def __str__(self) -> str:
        return f"{self.starts_at:%Y-%m-%d %H:%M} to {self.ends_at:%Y-%m-%d %H:%M}"

    def in_force(self, now: datetime) -> bool:
        return self.cancelled_at is None and self.starts_at <= now < self.ends_at


class AlertProgress(models.Model):
    """How the evaluation of a team's rules goes."""

    team = models.OneToOneField("fleet.Team", on_delete=models.CASCADE, primary_key=True, related_name="+")
    evaluated_at = models.DateTimeField()
    # Rackrent has watched without a break since then: silence before it is nobody's fault but its own.
    watching_since = models.DateTimeField()
    took_seconds = models.FloatField(default=0)
    # {"thermal": "TypeError"}: rules that could not be evaluated the last time.
    failed = models.JSONField(default=dict)

    def __str__(self) -> str:
        return f"{self.team} at {self.evaluated_at:%Y-%m-%d %H:%M:%S}"
