"""What no listing shows and people type: volumes, data out, addresses, licences, commitments."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone

from fleet.costs.charges.words import KINDS, UNITS
from fleet.inventory.words import choices

__all__ = ["TypedCharge"]
KIND_CHOICES = choices(KINDS)


class TypedCharge(models.Model):
    """[starts_at, ends_at) of one charge of an account, or of a machine of it; ends_at NULL: it goes on. Charged is price x quantity a `unit`.

    Never changed but for its end. What was wrong is removed, with a reason, and stays on record; the ledger has an interval for every other.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="+")
    account = models.ForeignKey("fleet.ProviderAccount", on_delete=models.CASCADE, related_name="typed_charges")
    instance = models.ForeignKey("fleet.Instance", on_delete=models.CASCADE, null=True, related_name="typed_charges")
    kind = models.CharField(max_length=16, choices=KIND_CHOICES)
    name = models.CharField(max_length=120)
    unit = models.CharField(max_length=10, choices=choices(UNITS))
    price = models.DecimalField(max_digits=20, decimal_places=10)
    # GB for the unit gb_month, else how many of it.
    quantity = models.DecimalField(max_digits=20, decimal_places=6, default=1)
    currency = models.CharField(max_length=3)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(null=True)
    note = models.CharField(max_length=300, blank=True)
    created_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    removed_at = models.DateTimeField(null=True)
    removed_by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    removed_reason = models.CharField(max_length=300, blank=True)

    class Meta:
        db_table = "typed_charge"
        indexes = [models.Index(fields=["team", "-starts_at"], name="typed_charge_team")]
        constraints = [
            models.CheckConstraint(condition=Q(price__gte=0, quantity__gt=0), name="typed_charge_amount"),
            models.CheckConstraint(
                condition=Q(ends_at__isnull=True) | Q(ends_at__gt=models.F("starts_at")), name="typed_charge_has_length"
            ),
        ]

    def __str__(self) -> str:
        return self.name
