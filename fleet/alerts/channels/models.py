"""Where messages go, who hears what, what was sent, and the calendar that people subscribe to."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

__all__ = ["CalendarEntry", "CalendarFeed", "Channel", "Delivery", "DeliveryState", "Digest", "LinkUse", "Route"]


class Digest(models.TextChoices):
    """How often a route is told."""

    NONE = "none", _("at once")
    HOURLY = "hourly", _("once an hour")
    DAILY = "daily", _("once a day, at 09:00")
    WEEKLY = "weekly", _("once a week, Monday at 09:00")


class DeliveryState(models.TextChoices):
    QUEUED = "queued", _("waits")
    SENDING = "sending", _("is being sent")
    SENT = "sent", _("sent")
    FAILED = "failed", _("failed, is tried again")
    DEAD = "dead", _("given up")
    SUPPRESSED = "suppressed", _("not sent")


class Channel(models.Model):
    """One place that messages go to: the team's, or, with an `owner`, one person's own.

    `claim` is held by the one worker that sends through it; another may take over from `claimed_until` on.
    `broken`: the code of what a person has to mend; nothing is sent until they did.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="channels")
    owner = models.ForeignKey("fleet.User", on_delete=models.CASCADE, null=True, related_name="+")
    kind = models.CharField(max_length=20)
    name = models.CharField(max_length=80)
    options = models.JSONField(default=dict)
    # Its addresses and keys, sealed with CREDENTIAL_KEYS; b"" = none.
    secret = models.BinaryField(default=bytes, blank=True)
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    claim = models.UUIDField(null=True)
    claimed_until = models.DateTimeField(null=True)
    # Not before: its rate, a Retry-After, or the back-off after failures.
    hold_until = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0, help_text="Failed sendings since the last good one.")
    broken = models.CharField(max_length=24, blank=True)
    broken_at = models.DateTimeField(null=True)
    last_ok_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint("team", "name", name="channel_name_once", condition=models.Q(owner__isnull=True)),
            models.UniqueConstraint("owner", "team", "name", name="own_channel_name_once"),
        ]

    def __str__(self) -> str:
        return self.name


class Route(models.Model):
    """What a channel is told, when, and in which language. Empty lists: everything.

    Quiet hours are [quiet_from, quiet_until) on the clock of `time_zone`, over midnight where they end before they begin.
    """

    channel = models.ForeignKey("fleet.Channel", on_delete=models.CASCADE, related_name="routes")
    severities = models.JSONField(default=list)
    causes = models.JSONField(default=list)
    projects: models.ManyToManyField[models.Model, models.Model] = models.ManyToManyField(
        "fleet.Project", related_name="+"
    )
    only_escalated = models.BooleanField(default=False)
    # Of the machines of the channel's owner.
    only_mine = models.BooleanField(default=False)
    quiet_from = models.TimeField(null=True)
    quiet_until = models.TimeField(null=True)
    urgent_breaks_quiet = models.BooleanField(default=True)
    digest = models.CharField(max_length=8, choices=Digest, default=Digest.NONE)
    language = models.CharField(max_length=16, blank=True)
    time_zone = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return f"route {self.pk} of {self.channel}"


class Delivery(models.Model):
    """One event for one channel, written in the transaction of the event. `event` is empty for a test message.

    `batch` names the message that it went out with, and stays when the message is sent again.
    `uncertain`: how often nobody could tell whether the message had gone out.
    """

    channel = models.ForeignKey("fleet.Channel", on_delete=models.CASCADE, related_name="deliveries")
    route = models.ForeignKey("fleet.Route", on_delete=models.SET_NULL, null=True, related_name="+")
    event = models.ForeignKey("fleet.AlertEvent", on_delete=models.CASCADE, null=True, related_name="deliveries")
    alert = models.ForeignKey("fleet.Alert", on_delete=models.CASCADE, null=True, related_name="deliveries")
    state = models.CharField(max_length=12, choices=DeliveryState, default=DeliveryState.QUEUED)
    digest = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    next_attempt_at = models.DateTimeField(default=timezone.now)
    attempts = models.PositiveSmallIntegerField(default=0)
    uncertain = models.PositiveSmallIntegerField(default=0)
    batch = models.UUIDField(null=True)
    claimed_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    took_ms = models.PositiveIntegerField(null=True)
    response_id = models.CharField(max_length=200, blank=True)
    error = models.CharField(max_length=24, blank=True)
    error_detail = models.CharField(max_length=200, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint("event", "channel", name="delivery_once")]
        indexes = [
            models.Index(
                fields=["channel", "next_attempt_at"],
                name="delivery_open",
                condition=models.Q(state__in=["queued", "sending", "failed"]),
            ),
            models.Index(fields=["channel", "-created_at"], name="delivery_log"),
        ]

    def __str__(self) -> str:
        return f"delivery {self.pk} ({self.state})"


class LinkUse(models.Model):
    """An act that a link in a message did. The link does not do it again."""

    nonce = models.CharField(max_length=32)
    action = models.CharField(max_length=16)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint("nonce", "action", name="link_use_once")]

    def __str__(self) -> str:
        return self.action


class CalendarFeed(models.Model):
    """One person's calendar of one team. Only the SHA-256 of its address's secret is stored."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="calendar_feeds")
    user = models.ForeignKey("fleet.User", on_delete=models.CASCADE, related_name="calendar_feeds")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint("team", "user", name="calendar_feed_once")]

    def __str__(self) -> str:
        return f"calendar of {self.user}"


class CalendarEntry(models.Model):
    """One thing that is planned, as calendars know it: `uid` stays, `sequence` grows with every change."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    uid = models.CharField(max_length=80)
    kind = models.CharField(max_length=20)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    values = models.JSONField(default=dict)
    sequence = models.PositiveIntegerField(default=0)
    cancelled_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint("team", "uid", name="calendar_entry_once")]

    def __str__(self) -> str:
        return self.uid

    def says(self) -> tuple[datetime, datetime, str, dict[str, object]]:
        """What a change of is a change to the reader."""
        return self.starts_at, self.ends_at, self.kind, self.values
