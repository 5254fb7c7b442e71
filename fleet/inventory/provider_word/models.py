"""Use as providers measured it, and when each account was last asked for what its list does not carry."""

from __future__ import annotations

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.utils import timezone

from fleet.providers.base import NoticeKind

__all__ = ["ProviderNotice", "ProviderReading", "ProviderUsage"]

PROVIDER = "provider"


class ProviderUsage(models.Model):
    """What a provider measured of one machine: at most one row for each five minutes, the last that was read in them.

    Shown as the provider's word; no state of a GPU and no rule is decided by it. NULL, and null for one GPU = it does not say.
    """

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="provider_usage")
    slot = models.DateTimeField(help_text="`at`, down to five minutes.")
    at = models.DateTimeField(help_text="When it was measured; where the provider does not say, when it was read.")
    source = models.CharField(max_length=16, default=PROVIDER)
    gpu_utilization_percent = models.JSONField(default=list, blank=True, help_text="One for each GPU.")
    gpu_memory_percent = models.JSONField(default=list, blank=True, help_text="One for each GPU.")
    cpu_percent = models.FloatField(null=True)
    memory_percent = models.FloatField(null=True)
    network_received_bytes_per_s = models.FloatField(null=True)
    network_sent_bytes_per_s = models.FloatField(null=True)
    disk_read_bytes_per_s = models.FloatField(null=True)
    disk_written_bytes_per_s = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint("instance", "slot", name="provider_usage_once")]
        indexes = [BrinIndex(fields=["slot"], name="provider_usage_slot")]

    def __str__(self) -> str:
        return f"{self.instance_id} {self.at:%Y-%m-%d %H:%M}"


class ProviderNotice(models.Model):
    """What a provider announced for a machine. Open while its complete answers list it; `key` is the provider's, of that machine."""

    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="notices")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="notices")
    kind = models.CharField(max_length=16, choices=[(kind.value, kind.value) for kind in NoticeKind])
    key = models.CharField(max_length=200)
    starts_at = models.DateTimeField(null=True)
    detail = models.CharField(max_length=500, blank=True)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    gone_at = models.DateTimeField(null=True, help_text="When an answer first lacked it.")

    class Meta:
        constraints = [models.UniqueConstraint("instance", "key", name="provider_notice_once")]

    def __str__(self) -> str:
        return f"{self.instance_id} {self.kind}"


class ProviderReading(models.Model):
    """One question that an account is asked at an interval of its own (`subject`: see reading.SUBJECTS).

    `claimed_at` is set while it is asked; only the reading that set it may write what it found.
    """

    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="readings")
    subject = models.CharField(max_length=16)
    next_at = models.DateTimeField(default=timezone.now, db_index=True)
    claimed_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0, help_text="Failed readings since the last complete one.")
    error_kind = models.CharField(max_length=40, blank=True)
    error_detail = models.CharField(max_length=500, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint("account", "subject", name="provider_reading_once")]

    def __str__(self) -> str:
        return f"{self.account_id} {self.subject}"
