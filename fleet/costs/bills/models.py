"""Bills as rows: what was imported, its lines, and how a month of them compares with what was counted here."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet.costs.bills.words import CHARGE_KINDS, CLASSES, STATUSES
from fleet.inventory.words import choices

__all__ = [
    "AcceptedLine",
    "Bill",
    "BillLine",
    "BillSource",
    "BillState",
    "BillUpload",
    "Reconciliation",
    "ReconciliationLine",
]


class BillSource(models.TextChoices):
    API = "api", _("asked of the provider")
    CSV = "csv", _("CSV file")
    FOCUS = "focus", _("FOCUS file")


class BillState(models.TextChoices):
    CURRENT = "current", _("counts")
    REPLACED = "replaced", _("replaced")


class Bill(models.Model):
    """One import: what the provider, or a file, says was charged in [starts_at, ends_at). Its lines are never changed.

    `digest`: of the file's bytes, or of the lines that the provider answered. `replaced`: none of its lines counts any more.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="bills")
    source = models.CharField(max_length=8, choices=BillSource)
    file_name = models.CharField(max_length=200, blank=True)
    digest = models.CharField(max_length=64)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    line_count = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=BillState)
    imported_at = models.DateTimeField(default=timezone.now)
    # NULL: the provider was asked.
    imported_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        db_table = "bill"
        constraints = [
            models.UniqueConstraint("account", "digest", name="bill_once", condition=models.Q(state="current"))
        ]

    def __str__(self) -> str:
        return f"{self.source} of {self.account_id}, {self.starts_at:%Y-%m}"


class BillLine(models.Model):
    """One line of a bill. `key`: the provider's id of it, or a digest of what it is about; a line that says something new has the old one's.

    It counts while `superseded_by` is NULL; another import may say the same line anew, or drop it, and both are kept.
    """

    bill = models.ForeignKey(Bill, on_delete=models.CASCADE, related_name="lines")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, db_index=False, related_name="+")
    key = models.CharField(max_length=200)
    kind = models.CharField(max_length=16, choices=choices(CHARGE_KINDS))
    raw_kind = models.CharField(max_length=200, blank=True)
    instance = models.ForeignKey("fleet.Instance", on_delete=models.SET_NULL, null=True, related_name="+")
    external_id = models.CharField(max_length=200, blank=True)
    resource = models.CharField(max_length=200, blank=True)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    amount = models.DecimalField(max_digits=24, decimal_places=12)
    currency = models.CharField(max_length=3)
    quantity = models.DecimalField(max_digits=24, decimal_places=9, null=True)
    unit = models.CharField(max_length=60, blank=True)
    description = models.CharField(max_length=300, blank=True)
    superseded_by = models.ForeignKey(Bill, on_delete=models.SET_NULL, null=True, related_name="superseded_lines")

    class Meta:
        db_table = "bill_line"
        constraints = [
            models.UniqueConstraint(
                "account", "key", name="bill_line_once", condition=models.Q(superseded_by__isnull=True)
            ),
            models.CheckConstraint(condition=models.Q(ends_at__gt=models.F("starts_at")), name="bill_line_period"),
        ]
        indexes = [models.Index(fields=["account", "starts_at"], name="bill_line_account_start")]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} {self.key}"


class BillUpload(models.Model):
    """A file between its preview and its import. Dropped when it is taken, or a day later."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="+")
    file_name = models.CharField(max_length=200)
    content = models.BinaryField()
    # How it is to be read: {"format", "time_zone", "keep", "columns": {ours: theirs}}.
    reading = models.JSONField(default=dict)
    created_by = models.ForeignKey("fleet.User", on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "bill_upload"

    def __str__(self) -> str:
        return f"{self.file_name} for {self.account_id}"


class Reconciliation(models.Model):
    """A month of an account in one currency: what was counted here against what was billed, as made at `made_at`.

    counted + explained + left = billed, exactly. `month`: its first day, of UTC.
    """

    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="reconciliations")
    month = models.DateField()
    currency = models.CharField(max_length=3)
    counted = models.DecimalField(max_digits=28, decimal_places=14)
    billed = models.DecimalField(max_digits=28, decimal_places=14)
    explained = models.DecimalField(max_digits=28, decimal_places=14)
    left = models.DecimalField(max_digits=28, decimal_places=14)
    # Billed, of the lines that matched.
    matched = models.DecimalField(max_digits=28, decimal_places=14)
    matched_lines = models.PositiveIntegerField()
    made_at = models.DateTimeField()

    class Meta:
        db_table = "reconciliation"
        constraints = [models.UniqueConstraint("account", "month", "currency", name="reconciliation_once")]

    def __str__(self) -> str:
        return f"{self.account_id} in {self.month:%Y-%m}, {self.currency}"


class ReconciliationLine(models.Model):
    """What did not match, or was corrected before it did, of one machine (or resource), class of meters and period.

    `reasons`: [{"kind", "amount", …}] of what is explained of `billed - counted`; the rest is `left`.
    """

    reconciliation = models.ForeignKey(Reconciliation, on_delete=models.CASCADE, related_name="lines")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, null=True, related_name="+")
    # The resource, or the provider's id of a machine that was never listed here.
    name = models.CharField(max_length=200, blank=True)
    meter = models.CharField(max_length=16, choices=choices(CLASSES))
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    status = models.CharField(max_length=16, choices=choices(STATUSES))
    counted = models.DecimalField(max_digits=28, decimal_places=14)
    billed = models.DecimalField(max_digits=28, decimal_places=14)
    left = models.DecimalField(max_digits=28, decimal_places=14)
    reasons = models.JSONField(default=list)

    class Meta:
        db_table = "reconciliation_line"

    def __str__(self) -> str:
        return f"{self.status} {self.meter} of {self.instance_id or self.name}"


class AcceptedLine(models.Model):
    """Which line of which reconciliation an adjustment counts as billed. It stays when the adjustment is reversed."""

    adjustment = models.OneToOneField(
        "fleet.Adjustment", on_delete=models.CASCADE, primary_key=True, related_name="accepted"
    )
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="+")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, null=True, related_name="+")
    name = models.CharField(max_length=200, blank=True)
    meter = models.CharField(max_length=16, choices=choices(CLASSES))
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()

    class Meta:
        db_table = "accepted_line"
        indexes = [models.Index(fields=["account", "starts_at"], name="accepted_line_account_start")]

    def __str__(self) -> str:
        return f"{self.meter} of {self.instance_id or self.name} as billed"
