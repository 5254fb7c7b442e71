"""What people asked a provider to do, how far it is, and every step on the way. An operation ends by proof, not by an answer."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.utils import timezone
from django.utils.translation import pgettext_lazy

__all__ = ["Operation", "OperationEvent", "OperationKind", "OperationState"]

SECONDS_PER_HOUR = 3600


class OperationKind(models.TextChoices):
    LAUNCH = "launch", pgettext_lazy("operation", "launch")
    START = "start", pgettext_lazy("operation", "start")
    STOP = "stop", pgettext_lazy("operation", "stop")
    TERMINATE = "terminate", pgettext_lazy("operation", "terminate")
    REBOOT = "reboot", pgettext_lazy("operation", "restart")
    SAVE_IMAGE = "save_image", pgettext_lazy("operation", "save image")


class OperationState(models.TextChoices):
    """requested → accepted → verifying → proved | failed. `accepted`: the provider said yes, which proves nothing."""

    REQUESTED = "requested", pgettext_lazy("operation", "requested")
    ACCEPTED = "accepted", pgettext_lazy("operation", "accepted")
    VERIFYING = "verifying", pgettext_lazy("operation", "verifying")
    PROVED = "proved", pgettext_lazy("operation", "proved")
    FAILED = "failed", pgettext_lazy("operation", "failed")


OPEN_STATES = (OperationState.REQUESTED, OperationState.ACCEPTED, OperationState.VERIFYING)


class Operation(models.Model):
    """One act on one machine, written before its provider hears of it."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="operations")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="operations")
    instance = models.ForeignKey(
        "fleet.Instance",
        on_delete=models.CASCADE,
        null=True,
        related_name="operations",
        help_text="Of a launch: NULL until its machine is known.",
    )
    kind = models.CharField(max_length=16, choices=OperationKind)
    state = models.CharField(max_length=16, choices=OperationState, default=OperationState.REQUESTED)
    token = models.CharField(max_length=32, unique=True, help_text="By it a machine is found whose answer was lost.")
    idempotency_key = models.CharField(max_length=200, blank=True)
    # Of a launch {"create", "offer", "environment"}, of an image {"name"}.
    spec = models.JSONField(default=dict, blank=True, encoder=DjangoJSONEncoder)
    sealed = models.BinaryField(
        default=bytes, blank=True, help_text="Of a launch under way: its startup script, encrypted."
    )
    project = models.ForeignKey("fleet.Project", on_delete=models.SET_NULL, null=True, related_name="+")
    requested_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    requested_label = models.CharField(max_length=200, blank=True)
    override_reason = models.CharField(max_length=300, blank=True, help_text="Why holds on the machine did not count.")
    # Of the state in which it was asked for; a launch: of its offer. What is burnt until the proof is reckoned from it.
    price_per_hour = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    currency = models.CharField(max_length=3, default="USD")
    state_before = models.CharField(max_length=16, blank=True)
    started_before = models.DateTimeField(null=True)

    requested_at = models.DateTimeField(default=timezone.now)
    # Written before each call, with `uncertain`: a worker that dies in the call leaves a call whose outcome nobody knows.
    sent_at = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    uncertain = models.BooleanField(default=False)
    accepted_at = models.DateTimeField(null=True)
    proved_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    proof = models.CharField(max_length=24, blank=True, help_text="What showed it: see words.PROOFS.")

    # Of a launch the machine, of an image the image, as the provider named them.
    result_id = models.CharField(max_length=300, blank=True)
    result_region = models.CharField(max_length=80, blank=True)

    next_at = models.DateTimeField(default=timezone.now, help_text="When it is looked at again.")
    claimed_until = models.DateTimeField(null=True, help_text="Only the worker that set it may write what it found.")
    seen_state = models.CharField(max_length=16, blank=True)
    seen_billing = models.CharField(max_length=16, blank=True)
    seen_at = models.DateTimeField(null=True)
    moved_at = models.DateTimeField(null=True, help_text="When a reading first showed something of the last call.")
    absent_reads = models.PositiveIntegerField(default=0)
    absent_since = models.DateTimeField(null=True)
    failed_reads = models.PositiveIntegerField(default=0, help_text="Since the last reading.")
    error_kind = models.CharField(max_length=40, blank=True)
    error_detail = models.CharField(max_length=500, blank=True)
    error_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["instance"],
                name="operation_open_once",
                condition=models.Q(state__in=("requested", "accepted", "verifying")),
            ),
            models.UniqueConstraint(
                fields=["team", "idempotency_key"],
                name="operation_key_once",
                condition=~models.Q(idempotency_key=""),
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_at"],
                name="operation_due",
                condition=models.Q(state__in=("requested", "accepted", "verifying")),
            ),
            models.Index(fields=["team", "-requested_at"], name="operation_team_at"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.machine_name}"

    @property
    def machine_name(self) -> str:
        return self.instance.name if self.instance else str(self.spec.get("create", {}).get("name", ""))

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES

    @property
    def ended_at(self) -> datetime | None:
        return self.proved_at or self.failed_at

    def burnt(self, now: datetime) -> Decimal | None:
        """Money since it was asked for, up to its end: what a stop that is not proved has cost. None = no price is known."""
        if self.price_per_hour is None:
            return None
        seconds = ((self.ended_at or now) - self.requested_at).total_seconds()
        return self.price_per_hour * Decimal(max(seconds, 0)) / SECONDS_PER_HOUR


class OperationEvent(models.Model):
    """One step of an operation; `kind` is one of words.EVENTS. `detail`: the provider's own words, or a reason that a person gave."""

    operation = models.ForeignKey("fleet.Operation", on_delete=models.CASCADE, related_name="events")
    at = models.DateTimeField()
    kind = models.CharField(max_length=24)
    state = models.CharField(max_length=16, choices=OperationState)
    seen_state = models.CharField(max_length=16, blank=True)
    seen_billing = models.CharField(max_length=16, blank=True)
    error_kind = models.CharField(max_length=40, blank=True)
    detail = models.CharField(max_length=500, blank=True)

    class Meta:
        indexes = [models.Index(fields=["operation", "at"], name="operation_event_at")]

    def __str__(self) -> str:
        return f"{self.kind} at {self.at:%Y-%m-%d %H:%M:%S}"
