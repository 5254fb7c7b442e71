"""Offers, where they were read, and what the team thinks of those who make them."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from fleet.inventory.words import MARKETS, TENANCIES, choices
from fleet.providers.base import Market, Tenancy

__all__ = ["Offer", "OfferSource", "ProviderScore", "ScoreKind", "SourceKind"]

# By these the schema of the API knows what instances and offers share.
MARKET_CHOICES = choices(MARKETS)


class SourceKind(models.TextChoices):
    LIVE = "live", _("live offers")
    TABLE = "table", _("price table")
    IMPORT = "import", _("imported list")


class OfferSource(models.Model):
    """One list of offers. It is read whole or stays as it was; `read_at` is the last time that it was whole.

    `claimed_at` is set while a live list is read; only the reading that set it may write what it found.
    """

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="offer_sources")
    kind = models.CharField(max_length=8, choices=SourceKind)
    name = models.CharField(_("name"), max_length=80)
    account = models.OneToOneField(
        "fleet.ProviderAccount", on_delete=models.CASCADE, null=True, related_name="offer_source"
    )
    interval_seconds = models.PositiveIntegerField(default=900)
    next_at = models.DateTimeField(default=timezone.now, db_index=True)
    claimed_at = models.DateTimeField(null=True)
    read_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0, help_text="Failed readings since the last complete one.")
    error_kind = models.CharField(max_length=40, blank=True)
    error_detail = models.CharField(max_length=500, blank=True)
    # Of a table: which edition of it the rows are.
    edition = models.CharField(max_length=64, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint("team", "kind", "name", name="offer_list_once", condition=~models.Q(kind="live"))
        ]

    def __str__(self) -> str:
        return self.name


class Offer(models.Model):
    """Something that can be rented, as a source last showed it. NULL and "" = the source does not say. Prices are of the whole machine."""

    source = models.ForeignKey("fleet.OfferSource", on_delete=models.CASCADE, related_name="offers")
    # Names the offer within its source, so that a later reading finds the same row.
    key = models.CharField(max_length=400)
    provider = models.CharField(max_length=60)
    external_id = models.CharField(max_length=200, blank=True)
    instance_type = models.CharField(max_length=120, blank=True)
    region = models.CharField(max_length=80, blank=True)
    market = models.CharField(max_length=16, choices=MARKET_CHOICES, default=Market.UNKNOWN)
    tenancy = models.CharField(max_length=16, choices=choices(TENANCIES), default=Tenancy.UNKNOWN)
    price_per_hour = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    currency = models.CharField(max_length=3)
    storage_price_per_gb_month = models.DecimalField(max_digits=14, decimal_places=6, null=True)
    available = models.BooleanField(null=True)
    gpu_raw = models.CharField(max_length=120, blank=True)
    gpu_model = models.CharField(max_length=60, blank=True)
    gpu_count = models.PositiveIntegerField(null=True)
    gpu_memory_mib = models.PositiveIntegerField(null=True)
    gpu_interconnect = models.CharField(max_length=16, blank=True)
    vcpus = models.PositiveIntegerField(null=True)
    ram_mib = models.PositiveIntegerField(null=True)
    disk_gb = models.PositiveIntegerField(null=True)
    disk_kind = models.CharField(max_length=16, blank=True)
    internet_down_mbps = models.FloatField(null=True)
    internet_up_mbps = models.FloatField(null=True)
    node_network_gbps = models.FloatField(null=True)
    reliability = models.FloatField(null=True)
    # The day of the price and who says so, where the list is not live.
    priced_on = models.DateField(null=True)
    origin = models.CharField(max_length=200, blank=True)
    extra = models.JSONField(default=dict, blank=True)
    seen_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint("source", "key", name="offer_once")]
        indexes = [models.Index(fields=["source", "gpu_model"], name="offer_source_gpu")]

    def __str__(self) -> str:
        return f"{self.provider} {self.instance_type or self.key}"


class ScoreKind(models.TextChoices):
    SUPPORT = "support", _("support")
    HEALTH = "health", _("health")


class ProviderScore(models.Model):
    """What the ranking of offers knows of a provider beyond its prices, 1 (bad) to 5 (good). Support is a person's judgement."""

    team = models.ForeignKey("fleet.Team", on_delete=models.CASCADE, related_name="provider_scores")
    provider = models.CharField(max_length=60)
    kind = models.CharField(max_length=16, choices=ScoreKind, default=ScoreKind.SUPPORT)
    value = models.PositiveSmallIntegerField(validators=[MinValueValidator(1), MaxValueValidator(5)])
    note = models.CharField(max_length=300, blank=True)
    by = models.ForeignKey("fleet.User", on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [
            models.UniqueConstraint("team", "provider", "kind", name="provider_score_once"),
            models.CheckConstraint(condition=models.Q(value__range=(1, 5)), name="provider_score_1_to_5"),
        ]

    def __str__(self) -> str:
        return f"{self.provider}: {self.value} of 5"
