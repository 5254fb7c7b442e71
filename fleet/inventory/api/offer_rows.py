"""How an offer is answered: what its source says, how it fits the search and why, and what to look at."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from fleet.inventory.offers.launch import is_launchable
from fleet.inventory.offers.models import Offer, SourceKind
from fleet.inventory.offers.need import Need, price_for
from fleet.inventory.offers.search import Ranked
from fleet.inventory.offers.words import oversight_text, reason_of

OFFER_EXAMPLE = {
    "id": 12,
    "team": "acme",
    "source": 3,
    "source_kind": "table",
    "source_name": "Rackrent",
    "account": None,
    "provider": "nebius",
    "external_id": "",
    "instance_type": "HGX H100",
    "region": "",
    "market": "on_demand",
    "tenancy": "unknown",
    "price_per_hour": "30.800000",
    "price_per_gpu_hour": "3.850000",
    "currency": "USD",
    "storage_price_per_gb_month": None,
    "available": None,
    "gpu_raw": "H100 SXM",
    "gpu_model": "H100 SXM",
    "gpu_count": 8,
    "gpu_memory_mib": 81559,
    "gpu_interconnect": "nvlink",
    "vcpus": None,
    "ram_mib": None,
    "disk_gb": None,
    "disk_kind": "",
    "internet_down_mbps": None,
    "internet_up_mbps": None,
    "node_network_gbps": None,
    "reliability": None,
    "priced_on": "2026-09-25",
    "origin": "nebius.com/prices",
    "seen_at": "2026-11-30T08:00:00Z",
    "launchable": False,
    "score": 52.5,
    "reasons": [
        {"part": "gpu", "weight": 5, "value": 1.0, "why": "8 of its 8 GPUs are asked for"},
        {"part": "network", "weight": 4, "value": None, "why": "not told: counts as the middle"},
    ],
    "warnings": [{"code": "vcpus", "known": False, "text": "vCPUs are not told"}],
    "missing": ["vcpus"],
}


class ReasonSerializer(serializers.Serializer[Any]):
    part = serializers.CharField(help_text="gpu, network, images, support, price or health.")
    weight = serializers.IntegerField(help_text="0: it does not count.")
    value = serializers.FloatField(allow_null=True, help_text="0 to 1; null: not told, which counts as 0.5.")
    why = serializers.CharField(help_text="In words, in the language asked for.")


class OversightSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="What people overlook; docs/offers.md has them.")
    known = serializers.BooleanField(help_text="False: the offer does not say.")
    text = serializers.CharField(help_text="In words, in the language asked for.")


@extend_schema_serializer(examples=[OpenApiExample("offer", OFFER_EXAMPLE)])
class OfferSerializer(serializers.ModelSerializer[Offer]):
    """Of an offer that `ranked` in the context says more of: id -> Ranked."""

    team = serializers.CharField(source="source.team.slug", help_text="Its address (slug).")
    source_kind = serializers.ChoiceField(source="source.kind", choices=SourceKind.values)
    source_name = serializers.CharField(source="source.name")
    account = serializers.IntegerField(
        source="source.account_id", allow_null=True, help_text="Whose live offer it is; null: of a list."
    )
    price_per_gpu_hour = serializers.SerializerMethodField(help_text="In `currency`; null where it cannot be told.")
    launchable = serializers.SerializerMethodField(help_text="Whether it can be rented from here.")
    score = serializers.SerializerMethodField(help_text="0 to 100: how well it fits the search.")
    reasons = serializers.SerializerMethodField()
    warnings = serializers.SerializerMethodField()
    missing = serializers.SerializerMethodField(help_text="What was asked for and the offer does not say.")

    class Meta:
        model = Offer
        fields = list(OFFER_EXAMPLE)

    def ranked(self, offer: Offer) -> Ranked:
        found: Ranked = self.context["ranked"][offer.pk]
        return found

    @extend_schema_field(serializers.DecimalField(max_digits=14, decimal_places=6, allow_null=True))
    def get_price_per_gpu_hour(self, offer: Offer) -> str | None:
        price = price_for(self.ranked(offer).facts, Need())
        return None if price is None else f"{price:.6f}"

    @extend_schema_field({"type": "boolean"})
    def get_launchable(self, offer: Offer) -> bool:
        return is_launchable(offer)

    @extend_schema_field({"type": "number"})
    def get_score(self, offer: Offer) -> float:
        return round(self.ranked(offer).score.total, 1)

    @extend_schema_field(ReasonSerializer(many=True))
    def get_reasons(self, offer: Offer) -> list[dict[str, Any]]:
        return [
            {"part": part.name, "weight": part.weight, "value": part.value, "why": reason_of(part)}
            for part in self.ranked(offer).score.parts
        ]

    @extend_schema_field(OversightSerializer(many=True))
    def get_warnings(self, offer: Offer) -> list[dict[str, Any]]:
        return [
            {"code": found.code, "known": found.known, "text": oversight_text(found)}
            for found in self.ranked(offer).warnings
        ]

    @extend_schema_field({"type": "array", "items": {"type": "string"}})
    def get_missing(self, offer: Offer) -> list[str]:
        return list(self.ranked(offer).missing)
