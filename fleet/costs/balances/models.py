"""What is left of prepaid money, as it was read or typed, and what was paid in."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

__all__ = ["BalanceLimits", "BalanceReading", "BalanceSource", "IdleBurn", "TopUp"]

WARNING_HOURS, URGENT_HOURS = 48, 12


class BalanceSource(models.TextChoices):
    PROVIDER = "provider", _("read from the provider")
    TYPED = "typed", _("typed")


class BalanceReading(models.Model):
    """What an account had left at a moment. The typed one of an account that nobody can read is counted down by the ledger."""

    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="balances")
    at = models.DateTimeField()
    amount = models.DecimalField(max_digits=20, decimal_places=6)
    currency = models.CharField(max_length=3)
    source = models.CharField(max_length=8, choices=BalanceSource)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        db_table = "balance_reading"
        constraints = [models.UniqueConstraint("account", "at", name="balance_reading_once")]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} of {self.account_id}"


class TopUp(models.Model):
    """A balance that was higher than at the reading before. `amount`: by how much; what was spent in between was paid in on top."""

    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="top_ups")
    at = models.DateTimeField()
    before = models.DecimalField(max_digits=20, decimal_places=6)
    amount = models.DecimalField(max_digits=20, decimal_places=6)
    currency = models.CharField(max_length=3)
    source = models.CharField(max_length=8, choices=BalanceSource)

    class Meta:
        db_table = "balance_top_up"
        constraints = [models.UniqueConstraint("account", "at", name="balance_top_up_once")]

    def __str__(self) -> str:
        return f"{self.amount} {self.currency} for {self.account_id}"


class BalanceLimits(models.Model):
    """For how many hours a balance must last before somebody is told. Without an account: of all the team's that have none of their own."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, null=True, related_name="+")
    warning_hours = models.PositiveIntegerField(default=WARNING_HOURS)
    urgent_hours = models.PositiveIntegerField(default=URGENT_HOURS)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        db_table = "balance_limits"
        constraints = [
            models.UniqueConstraint(fields=["team", "account"], name="balance_limits_once", nulls_distinct=False),
            models.CheckConstraint(condition=Q(urgent_hours__lte=F("warning_hours")), name="balance_limits_order"),
        ]

    def __str__(self) -> str:
        return f"limits of {self.account_id or self.team_id}"


class IdleBurn(models.Model):
    """What the machines of an account cost an hour that did nothing at all when it was last looked: currency -> amount."""

    account = models.OneToOneField(
        "fleet.ProviderAccount", on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    at = models.DateTimeField()
    amounts = models.JSONField(default=dict)

    class Meta:
        db_table = "balance_idle_burn"

    def __str__(self) -> str:
        return f"idle burn of {self.account_id}"
