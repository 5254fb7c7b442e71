"""What is sent to act on machines."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers

from fleet.inventory.operations.bulk import REQUESTS
from fleet.providers.values import Market
from fleet.rest.bodies import Body
from fleet.rest.filters import BIGGEST_ID

ACTS = [(kind, kind) for kind in REQUESTS]
MARKETS = [(market.value, market.value) for market in Market if market is not Market.UNKNOWN]
MAX_AT_ONCE = 500
MAX_USER_DATA = 16_384


class ActFields(Body[dict[str, Any]]):
    kind = serializers.ChoiceField(choices=ACTS)
    accept_loss = serializers.BooleanField(
        required=False, help_text="Stop and terminate: that the data which it destroys is meant to go."
    )
    override_reason = serializers.CharField(
        max_length=300,
        required=False,
        help_text="Stop, terminate and reboot: why no hold counts; start: why no launch block does. Needs an admin; it is kept.",
    )
    name = serializers.CharField(max_length=200, required=False, help_text="save_image: of the image.")


@extend_schema_serializer(
    examples=[
        OpenApiExample("stop", {"kind": "stop", "instance": 17}),
        OpenApiExample("terminate", {"kind": "terminate", "instance": 17, "accept_loss": True}),
    ]
)
class Act(ActFields):
    instance = serializers.IntegerField(  # type: ignore[assignment]  # declared fields leave the class
        min_value=1, max_value=BIGGEST_ID, help_text="The id of the machine."
    )


@extend_schema_serializer(examples=[OpenApiExample("stop two", {"kind": "stop", "instances": [17, 18]})])
class BulkAct(ActFields):
    instances = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=BIGGEST_ID),
        min_length=1,
        max_length=MAX_AT_ONCE,
        help_text="Ids of machines.",
    )


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "an H100", {"account": 2, "offer": "gpu_8x_h100_sxm5", "region": "us-east-1", "name": "train-02"}
        )
    ]
)
class Launch(Body[dict[str, Any]]):
    account = serializers.IntegerField(min_value=1, max_value=BIGGEST_ID, help_text="Whose account rents it.")
    offer = serializers.CharField(max_length=200, help_text="As the provider names it.")
    name = serializers.RegexField(
        r"^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$", max_length=60, help_text="Lower-case letters, digits and hyphens."
    )
    region = serializers.CharField(max_length=80, required=False)
    market = serializers.ChoiceField(choices=MARKETS, required=False)
    gpu_count = serializers.IntegerField(min_value=1, max_value=1024, required=False)
    image_id = serializers.CharField(max_length=300, required=False)
    disk_gb = serializers.IntegerField(min_value=1, max_value=1_000_000, required=False)
    max_price_per_hour = serializers.DecimalField(max_digits=14, decimal_places=6, min_value=0, required=False)
    ssh_public_key = serializers.CharField(max_length=16_384, required=False)
    user_data = serializers.CharField(
        max_length=MAX_USER_DATA, required=False, write_only=True, help_text="Runs at the first start; never answered."
    )
    labels = serializers.DictField(child=serializers.CharField(max_length=200), required=False)
    project = serializers.CharField(max_length=80, required=False, help_text="Its slug.")
    override_reason = serializers.CharField(
        max_length=300, required=False, help_text="Why no launch block counts. Needs an admin; it is kept."
    )

    def validate_market(self, word: str) -> Market:
        return Market(word)


@extend_schema_serializer(examples=[OpenApiExample("why", {"reason": "stopped in the provider's console"})])
class Abandoning(Body[dict[str, Any]]):
    reason = serializers.CharField(max_length=300, help_text="Kept with the operation.")
