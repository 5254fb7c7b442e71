"""Cleanup over the API: the lines of the page, and the word of a person that machines are gone."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.doubt import declare_gone
from fleet.inventory.models import Instance
from fleet.pages.cleanup_lines import Kind, Line, cleanup_lines, total
from fleet.pages.cleanup_words import advice, evidence
from fleet.rest.bodies import Body
from fleet.rest.filters import BIGGEST_ID
from fleet.rest.pagination import DEFAULT_LIMIT, MAX_LIMIT
from fleet.rest.parameters import number_of, word_of
from fleet.rest.problems import not_found
from fleet.teams.audit import Actor
from fleet.teams.models import Role
from fleet.teams.permissions import Access
from fleet.teams.scoping import ApiView
from fleet.teams.throttles import AnonymousThrottle, SeriesThrottle, TokenThrottle, UserThrottle

CENT = Decimal("0.01")
MOST_OFFSET = 100_000
LINE_EXAMPLE = {
    "kind": "stopped",
    "instance": 17,
    "name": "train-01",
    "account": 2,
    "since": "2026-11-29T18:00:00Z",
    "evidence": "only disks billed: boot disk, data disk, public address",
    "advice": "Start it, or save what matters and terminate it.",
    "per_month": "80.00",
    "currency": "USD",
    "operation": None,
    "heard_at": None,
    "charged": ["boot_disk", "data_disk", "public_address"],
}
CLEANUP_EXAMPLE = {
    "machines": 1,
    "per_month": [{"currency": "USD", "amount": "80.00"}],
    "unpriced": 0,
    "results": [LINE_EXAMPLE],
}


class LineSerializer(serializers.Serializer[Line]):
    kind = serializers.ChoiceField(
        choices=[one.value for one in Kind],
        help_text="`unproved`: asked for, and no reading shows it. `ghost`: ours, and not at the provider. "
        "`unmanaged`: at the provider, and not ours. `stopped`: off, and still charged.",
    )
    instance = serializers.IntegerField(source="instance.pk")  # type: ignore[assignment]  # declared fields leave the class
    name = serializers.CharField(source="instance.name")
    account = serializers.IntegerField(source="instance.account_id")
    since = serializers.DateTimeField()
    evidence = serializers.SerializerMethodField(help_text="How it is known, in the language asked for.")
    advice = serializers.SerializerMethodField(help_text="What to do about it.")
    per_month = serializers.SerializerMethodField(
        help_text="730 hours of it, in `currency`; of a ghost as it was last known. Null: not known, which is not nothing."
    )
    currency = serializers.CharField(source="instance.currency")
    operation = serializers.IntegerField(source="operation.pk", default=None, allow_null=True)
    heard_at = serializers.DateTimeField(allow_null=True, help_text="Of a ghost: when its agent was last heard.")
    charged = serializers.ListField(
        source="parts", child=serializers.CharField(), help_text="What this provider charges of a machine that is off."
    )

    def get_evidence(self, line: Line) -> str:
        return evidence(line, now=self.context["now"])

    def get_advice(self, line: Line) -> str:
        return advice(line)

    def get_per_month(self, line: Line) -> str | None:
        return None if line.per_month is None else str(line.per_month.quantize(CENT))


class AmountSerializer(serializers.Serializer[Any]):
    currency = serializers.CharField()
    amount = serializers.CharField(help_text="A month of 730 hours.")


@extend_schema_serializer(examples=[OpenApiExample("one machine", CLEANUP_EXAMPLE)])
class CleanupSerializer(serializers.Serializer[Any]):
    machines = serializers.IntegerField(help_text="How many there are, on whatever page.")
    per_month = AmountSerializer(many=True, help_text="Of all of them; currencies are never added.")
    unpriced = serializers.IntegerField(help_text="How many of them nobody knows the cost of.")
    results = LineSerializer(many=True, help_text="Section by section, the dearest first.")


@extend_schema_serializer(
    examples=[OpenApiExample("two", {"instances": [17, 18], "reason": "deleted in the console"}, request_only=True)]
)
class GoneBody(Body[dict[str, Any]]):
    instances = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=BIGGEST_ID),
        min_length=1,
        max_length=MAX_LIMIT,
        help_text="Ids of machines that lists leave out (`ghost`). Nothing is ended at the provider.",
    )
    reason = serializers.CharField(max_length=200, help_text="How it is known; kept in the audit log.")


PARAMETERS = [
    OpenApiParameter("team", description="Address (slug) of one of your teams; all of them unless told."),
    OpenApiParameter("kind", {"type": "string", "enum": [one.value for one in Kind]}, description="Only this section."),
    OpenApiParameter("account", int, description="Only machines of this account."),
    OpenApiParameter(
        "limit",
        {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
        description="Most lines in the answer.",
    ),
    OpenApiParameter(
        "offset",
        {"type": "integer", "minimum": 0, "maximum": MOST_OFFSET, "default": 0},
        description="How many to leave out.",
    ),
]


class CleanupView(ApiView):
    """What costs money and nobody may know of, made anew from what is known now. Nothing can be ended here."""

    serializer_class = CleanupSerializer
    throttle_classes = (TokenThrottle, UserThrottle, AnonymousThrottle, SeriesThrottle)
    known_parameters = ("team", "kind", "account", "limit", "offset")

    @extend_schema(parameters=PARAMETERS)
    def get(self, request: Request) -> Response:
        now = timezone.now()
        kind = word_of(request, "kind", ["", *Kind], default="")
        account = number_of(request, "account", low=0, high=BIGGEST_ID, default=0)
        limit = number_of(request, "limit", low=1, high=MAX_LIMIT, default=DEFAULT_LIMIT)
        offset = number_of(request, "offset", low=0, high=MOST_OFFSET, default=0)
        lines = [
            line
            for line in cleanup_lines(team_ids=_teams(request), now=now)
            if (not kind or line.kind == kind) and (not account or line.instance.account_id == account)
        ]
        return Response(_told(lines, lines[offset : offset + limit], now=now))

    @extend_schema(parameters=PARAMETERS[:1], request=GoneBody)
    def post(self, request: Request) -> Response:
        """Says that machines which lists leave out are gone: somebody looked at the provider. Answers what is left to clean up."""
        body = GoneBody(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        machines = _machines(request, asked["instances"])
        declare_gone(actor=Actor.of_call(request), instances=machines, reason=asked["reason"])
        now = timezone.now()
        left = cleanup_lines(team_ids=_teams(request), now=now)
        return Response(_told(left, left[:DEFAULT_LIMIT], now=now))


def _teams(request: Request) -> list[int]:
    return Access.of_request(request).team_ids(slug=request.query_params.get("team"))


def _told(lines: list[Line], page: list[Line], *, now: datetime) -> dict[str, Any]:
    found = total(lines)
    amounts = [{"currency": name, "amount": str(sum_.quantize(CENT))} for name, sum_ in sorted(found.per_month.items())]
    results = [LineSerializer(line, context={"now": now}).data for line in page]
    return {"machines": found.machines, "per_month": amounts, "unpriced": found.unpriced, "results": results}


def _machines(request: Request, ids: list[int]) -> list[Instance]:
    """Raises 404 for what the caller does not see, 403 where they only read."""
    roles = Access.of_request(request).roles
    machines = list(Instance.objects.filter(pk__in=ids, team__in=roles))
    if missing := sorted(set(ids) - {machine.pk for machine in machines}):
        raise not_found("instances", _("Not found: %(ids)s.") % {"ids": ", ".join(map(str, missing))})
    if any(roles[machine.team_id].rank < Role.OPERATOR.rank for machine in machines):
        raise PermissionDenied(
            _("This needs the role %(role)s or a token of that scope.") % {"role": Role.OPERATOR.label}
        )
    return machines
