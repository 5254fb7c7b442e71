"""Rules of attribution over the API."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.attribution.api.naming import WhoseFields, id_field, rows_named
from fleet.costs.attribution.desired import Attribution
from fleet.costs.attribution.models import AttributionRule, SplitMode
from fleet.costs.attribution.rules import RuleSaid, add_rule, change_rule, check_rule, end_rule, move_rule
from fleet.costs.attribution.standing import Moved, Preview, preview_rule
from fleet.inventory.machine_forms import LABEL
from fleet.rest.bodies import Body, naming_form_fields
from fleet.rest.filters import FlagFilter, IdsFilter
from fleet.rest.problems import NamedProblem
from fleet.teams.fields import one_line
from fleet.teams.models import Role
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows

RULE_EXAMPLE = {
    "id": 5,
    "team": "acme",
    "order": 1,
    "name_pattern": "train-*",
    "account": None,
    "label_key": "",
    "label_value": "",
    "project": "vision",
    "owner": None,
    "labels": {"cost_centre": "4711"},
    "split": "whole",
    "created_by": "alice",
    "created_at": "2026-11-30T12:20:00Z",
    "ended_at": None,
    "replaces": None,
}
PREVIEW_EXAMPLE = {
    "hour": "2026-11-30T12:00:00Z",
    "matched": 3,
    "moved": [
        {
            "instance": 17,
            "name": "train-01",
            "before": {"project": None, "owner": None, "split": "whole", "labels": {}},
            "after": {"project": 3, "owner": None, "split": "whole", "labels": {"cost_centre": "4711"}},
        }
    ],
}


@extend_schema_serializer(examples=[OpenApiExample("rule", RULE_EXAMPLE)])
class AttributionRuleSerializer(serializers.ModelSerializer[AttributionRule]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    account = serializers.IntegerField(source="account_id", allow_null=True, help_text="null: of any account.")
    project = serializers.CharField(source="project.slug", default=None, allow_null=True, help_text="Its slug.")
    owner = serializers.CharField(source="owner.username", default=None, allow_null=True, help_text="A user name.")
    labels = serializers.DictField(child=serializers.CharField(), help_text="Added to those of its machines.")
    created_by = serializers.CharField(
        source="created_by.username", default=None, allow_null=True, help_text="A user name; null for a token."
    )
    replaces = serializers.IntegerField(
        source="replaces_id", allow_null=True, help_text="The rule that ended as this one began."
    )

    class Meta:
        model = AttributionRule
        fields = list(RULE_EXAMPLE)


class RuleFields(WhoseFields):
    name_pattern = serializers.CharField(
        max_length=200, required=False, allow_blank=True, help_text="As in train-*, in any case; empty: any name."
    )
    account = id_field("An account's id; null: any.")
    label_key = serializers.CharField(
        max_length=100, required=False, allow_blank=True, help_text="A label, ours or the provider's; empty: none."
    )
    label_value = serializers.CharField(
        max_length=200, required=False, allow_blank=True, help_text="Empty: with any value."
    )
    labels = serializers.DictField(
        child=serializers.CharField(max_length=256), required=False, help_text="What its machines are labelled with."
    )
    split = serializers.ChoiceField(choices=SplitMode.choices, required=False)

    def validate_labels(self, labels: dict[str, str]) -> dict[str, str]:
        for key, value in labels.items():
            pair = f"{key}={value}"
            if not LABEL.fullmatch(pair) or not pair.isprintable():
                raise serializers.ValidationError(_("“%(part)s” is not key=value.") % {"part": one_line(pair)[:60]})
        return labels


@extend_schema_serializer(examples=[OpenApiExample("by name", {"name_pattern": "train-*", "project": "vision"})])
class NewAttributionRule(RuleFields):
    """Conditions, and what machines that meet all of them get: at least one of project, owner, labels and split."""


@extend_schema_serializer(examples=[OpenApiExample("another project", {"project": "speech"})])
class AttributionRuleChanges(RuleFields):
    """Only what is to change."""


@extend_schema_serializer(examples=[OpenApiExample("earlier", {"direction": "up"})])
class AttributionRuleMove(Body[dict[str, Any]]):
    direction = serializers.ChoiceField(choices=["up", "down"])


class AttributionSideSerializer(serializers.Serializer[Attribution]):
    project = serializers.IntegerField(source="project_id", allow_null=True, help_text="A project's id.")
    owner = serializers.IntegerField(source="owner_id", allow_null=True, help_text="A person's id.")
    split = serializers.ChoiceField(choices=SplitMode.choices)
    labels = serializers.DictField(child=serializers.CharField())


class AttributionMovedSerializer(serializers.Serializer[Moved]):
    instance = serializers.IntegerField(source="machine.pk")  # type: ignore[assignment]  # declared fields leave the class
    name = serializers.CharField(source="machine.name")
    before = AttributionSideSerializer()
    after = AttributionSideSerializer()


@extend_schema_serializer(examples=[OpenApiExample("preview", PREVIEW_EXAMPLE)])
class AttributionPreviewSerializer(serializers.Serializer[Preview]):
    hour = serializers.DateTimeField(help_text="From which it would hold.")
    matched = serializers.IntegerField(help_text="Machines that it would decide about.")
    moved = AttributionMovedSerializer(many=True, help_text="Machines that would change hands.")


class RuleFilter(django_filters.FilterSet):
    in_force = FlagFilter("ended_at", "isnull", help_text="Whether it has not ended.")
    account = IdsFilter(help_text="Ids of accounts, separated by commas: rules that ask for one of them.")


class AttributionRuleViewSet(WritableRows[AttributionRule]):
    """Whose machines are that nobody gave to somebody: the first rule in `order` that matches decides. Admins write them.

    A rule holds from the full hour in which it is made. It is never changed: a change ends it and begins another one in its place.
    """

    write_role = Role.ADMIN
    queryset = AttributionRule.objects.select_related("team", "project", "owner", "created_by")
    serializer_class = AttributionRuleSerializer
    filterset_class = RuleFilter
    orderings = ("order", "id", "-created_at")
    bodies = {
        "create": NewAttributionRule,
        "partial_update": AttributionRuleChanges,
        "move": AttributionRuleMove,
        "preview": NewAttributionRule,
    }
    answers = {
        "create": (status.HTTP_201_CREATED, AttributionRuleSerializer),
        "partial_update": (status.HTTP_200_OK, AttributionRuleSerializer),
        "move": (status.HTTP_200_OK, AttributionRuleSerializer),
        "preview": (status.HTTP_200_OK, AttributionPreviewSerializer),
    }

    def create(self, request: Request) -> Response:
        """Adds a rule behind all others, from the present hour on."""
        team = one_team(request, role=Role.ADMIN)
        with naming_form_fields():
            said = RuleSaid(**rows_named(team, self.body(request)))
            rule = add_rule(actor=self.actor(request), team=team, said=said, now=timezone.now())
        return self.answer(rule, status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        """Ends the rule and begins one that says what is sent, and else the same. The answer is the new one."""
        rule = self.get_object()
        asked = {**RuleSaid.of(rule).fields(), **rows_named(rule.team, self.body(request))}
        with naming_form_fields():
            fresh = change_rule(actor=self.actor(request), rule=rule, said=RuleSaid(**asked), now=timezone.now())
        if fresh is None:
            raise ended()
        return self.answer(fresh)

    def destroy(self, request: Request, pk: str) -> Response:
        """Ends a rule: from the present hour on it decides nothing. It stays listed, with `ended_at`."""
        end_rule(actor=self.actor(request), rule=self.get_object(), now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @action(detail=True, methods=["post"])
    def move(self, request: Request, pk: str) -> Response:
        """Changes places with the rule before or after it. Both are begun anew; the answer is this one as it is now."""
        rule, up = self.get_object(), self.body(request)["direction"] == "up"
        if not move_rule(actor=self.actor(request), rule=rule, up=up, now=timezone.now()):
            raise ended()
        return self.answer(self.get_queryset().get(replaces=rule))

    @action(detail=False, methods=["post"])
    def preview(self, request: Request) -> Response:
        """What a new rule would change, and from which hour on. Nothing is saved."""
        team = one_team(request, role=Role.ADMIN)
        with naming_form_fields():
            said = RuleSaid(**rows_named(team, self.body(request)))
            check_rule(team=team, said=said)
        return Response(AttributionPreviewSerializer(preview_rule(team=team, said=said, now=timezone.now())).data)


def ended() -> NamedProblem:
    text = _("The rule has ended, or there is none to change places with.")
    return NamedProblem(text, code="ended", status_code=status.HTTP_409_CONFLICT, field=None)
