"""Whose money it is: the rules that say it, the hours of each machine that follow from them, and how shared machines are split."""

from __future__ import annotations

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.lookups import Exact
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

__all__ = [
    "AttributionRule",
    "AttributionSource",
    "AttributionSpan",
    "MachineSplit",
    "MeasuredHour",
    "Reattribution",
    "ShareHour",
    "ShareProgress",
    "SplitMode",
    "UnixUse",
    "UnixUser",
]

JOB_LENGTH = 200
UNIX_NAME_LENGTH = 64


def at_full_hour(expression: str) -> Exact:
    """For a check: the moment has no minutes in UTC. A bound that does not exist passes."""
    past = Func(template=f"mod(extract(epoch from {expression})::bigint, 3600)", output_field=models.IntegerField())
    return Exact(past, 0)


class SplitMode(models.TextChoices):
    """Among whom the hours of a machine are divided."""

    WHOLE = "whole", _("all to one")
    HOLDS = "holds", _("among those who hold it")
    MEASURED = "measured", _("among those whose processes use its GPUs")


class AttributionSource(models.TextChoices):
    """What decided. MACHINE: nobody and no rule did, so that the machine has no project and no owner."""

    MANUAL = "manual", _("set on the machine")
    RULE = "rule", _("by a rule")
    MACHINE = "machine", _("nobody's yet")
    AGAIN = "again", _("attributed again")


class AttributionRule(models.Model):
    """Machines that meet all of its conditions ("" or NULL: no condition) go to `project` and `owner`, and get `labels`.

    Never changed: a change ends the rule and begins another one (`replaces`). The first one in `order` that matches is the one that holds.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="attribution_rules")
    order = models.PositiveIntegerField()
    # A glob over the whole name in any case: "train-*".
    name_pattern = models.CharField(_("name"), max_length=200, blank=True)
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, null=True, related_name="+")
    label_key = models.CharField(_("label"), max_length=100, blank=True)
    # "" = any value.
    label_value = models.CharField(max_length=200, blank=True)
    project = models.ForeignKey("fleet.Project", on_delete=models.SET_NULL, null=True, related_name="+")
    owner = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    labels = models.JSONField(default=dict, blank=True)
    split = models.CharField(max_length=8, choices=SplitMode, default=SplitMode.WHOLE)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    ended_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    ended_at = models.DateTimeField(null=True)
    replaces = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        db_table = "attribution_rule"
        constraints = [
            models.UniqueConstraint(
                "team", "order", name="attribution_rule_order_once", condition=Q(ended_at__isnull=True)
            )
        ]

    def __str__(self) -> str:
        return f"rule {self.order}"


class Reattribution(models.Model):
    """Hours of the past that were given to somebody else on purpose: who did it, when, why, and what it moved.

    `before` and `after` are what the days of [start, until) cost by project and owner, see money.py; `after` is NULL until they are summed again.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="reattributions")
    instances = models.ManyToManyField("fleet.Instance", related_name="+")
    rule = models.ForeignKey(AttributionRule, on_delete=models.SET_NULL, null=True, related_name="+")
    start = models.DateTimeField()
    until = models.DateTimeField()
    project = models.ForeignKey("fleet.Project", on_delete=models.SET_NULL, null=True, related_name="+")
    owner = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    reason = models.CharField(_("reason"), max_length=300)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    actor_label = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)
    before = models.JSONField(default=list)
    after = models.JSONField(null=True)

    class Meta:
        db_table = "reattribution"
        constraints = [
            models.CheckConstraint(condition=Q(until__gt=F("start")), name="reattribution_not_empty"),
        ]
        indexes = [models.Index(fields=["team", "-created_at"], name="reattribution_team_at")]

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%d %H:%M} to {self.until:%Y-%m-%d %H:%M}: {self.reason}"


class AttributionSpan(models.Model):
    """Whole hours of a machine, [lower, upper) in UTC, that belong to one project, owner and job. No upper bound: until something changes.

    With a `split` other than "whole" its hours are divided by ShareHour; `project` is then what the shares say nothing else of.
    """

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, related_name="attribution")
    period = DateTimeRangeField()
    project = models.ForeignKey("fleet.Project", on_delete=models.SET_NULL, null=True, related_name="+")
    owner = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    job = models.CharField(max_length=JOB_LENGTH, blank=True)
    labels = models.JSONField(default=dict)
    split = models.CharField(max_length=8, choices=SplitMode, default=SplitMode.WHOLE)
    source = models.CharField(max_length=8, choices=AttributionSource)
    rule = models.ForeignKey(AttributionRule, on_delete=models.SET_NULL, null=True, related_name="+")
    reattribution = models.ForeignKey(Reattribution, on_delete=models.SET_NULL, null=True, related_name="+")
    note = models.CharField(max_length=300, blank=True)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "attribution_span"
        constraints = [
            ExclusionConstraint(
                name="attribution_span_no_overlap",
                expressions=[
                    (Func("instance_id", "instance_id", Value("[]"), function="int8range"), RangeOperators.OVERLAPS),
                    ("period", RangeOperators.OVERLAPS),
                ],
            ),
            models.CheckConstraint(
                condition=Q(period__isempty=False, period__startswith__isnull=False), name="attribution_span_not_empty"
            ),
            models.CheckConstraint(
                condition=Q(at_full_hour("lower(period)")) & Q(at_full_hour("upper(period)")),
                name="attribution_span_full_hours",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.instance_id} {self.period}"


class MachineSplit(models.Model):
    """How people said that a machine is split. Without a row its rule says it, and without a rule it is whole."""

    instance = models.OneToOneField("fleet.Instance", on_delete=models.CASCADE, primary_key=True, related_name="split")
    split = models.CharField(max_length=8, choices=SplitMode)

    class Meta:
        db_table = "machine_split"

    def __str__(self) -> str:
        return f"{self.instance_id} {self.split}"


class ShareHour(models.Model):
    """A part of one hour of a split machine. What the shares of an hour leave over is idle; a database trigger keeps their sum within 1."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, db_index=False, related_name="+")
    hour = models.DateTimeField()
    project = models.ForeignKey("fleet.Project", on_delete=models.SET_NULL, null=True, db_index=False, related_name="+")
    owner = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, db_index=False, related_name="+")
    job = models.CharField(max_length=JOB_LENGTH, blank=True)
    share = models.DecimalField(max_digits=9, decimal_places=8)

    class Meta:
        db_table = "share_hour"
        constraints = [
            models.CheckConstraint(condition=Q(share__gt=0, share__lte=1), name="share_hour_share"),
            models.CheckConstraint(condition=at_full_hour("hour"), name="share_hour_full_hour"),
        ]
        indexes = [models.Index(fields=["instance", "hour"], name="share_hour_instance_hour")]

    def __str__(self) -> str:
        return f"{self.share} of {self.instance_id} at {self.hour}"


class ShareProgress(models.Model):
    """The hour up to which a split machine's shares are final."""

    instance = models.OneToOneField("fleet.Instance", on_delete=models.CASCADE, primary_key=True, related_name="+")
    until = models.DateTimeField()

    class Meta:
        db_table = "share_progress"

    def __str__(self) -> str:
        return f"{self.instance_id} until {self.until}"


class UnixUser(models.Model):
    """Whose the processes of a user of the operating system are: on one machine, or (NULL) on all of the team's that say nothing else."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="unix_users")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, null=True, related_name="unix_users")
    name = models.CharField(_("user name"), max_length=UNIX_NAME_LENGTH)
    owner = models.ForeignKey("fleet.User", on_delete=models.CASCADE, null=True, related_name="+")
    project = models.ForeignKey("fleet.Project", on_delete=models.CASCADE, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "unix_user"
        constraints = [
            models.UniqueConstraint(fields=["team", "instance", "name"], name="unix_user_once", nulls_distinct=False)
        ]

    def __str__(self) -> str:
        return self.name


class MeasuredHour(models.Model):
    """For how many GPU-seconds of an hour it was looked who uses a machine, and when last."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, db_index=False, related_name="+")
    hour = models.DateTimeField()
    gpu_seconds = models.FloatField(default=0)
    sampled_at = models.DateTimeField()

    class Meta:
        db_table = "measured_hour"
        constraints = [models.UniqueConstraint(fields=["instance", "hour"], name="measured_hour_once")]

    def __str__(self) -> str:
        return f"{self.instance_id} at {self.hour}"


class UnixUse(models.Model):
    """GPU-seconds of an hour that processes of one user had. "": processes whose user nobody could tell."""

    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, db_index=False, related_name="+")
    hour = models.DateTimeField()
    unix_user = models.CharField(max_length=UNIX_NAME_LENGTH, blank=True)
    gpu_seconds = models.FloatField()

    class Meta:
        db_table = "unix_use"
        constraints = [
            models.UniqueConstraint(fields=["instance", "hour", "unix_user"], name="unix_use_once"),
            models.CheckConstraint(condition=Q(gpu_seconds__gt=0), name="unix_use_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.unix_user} on {self.instance_id} at {self.hour}"
