"""Idle policies over the API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.idle.policies.covering import judged_by, stops
from fleet.idle.policies.models import IdleAction, IdlePolicy, IdleWindowFrom, UseMode
from fleet.idle.policies.said import PolicySaid
from fleet.idle.policies.saving import move_policy, remove_policy, save_policy
from fleet.idle.policies.shown import RELATED, rented
from fleet.idle.policies.words import sentence
from fleet.inventory.models import ProviderAccount
from fleet.inventory.words import TENANCIES, choices
from fleet.rest.bodies import Body, naming_form_fields
from fleet.rest.filters import BIGGEST_ID, FlagFilter, IdsFilter, WordsFilter
from fleet.rest.problems import NamedProblem
from fleet.teams.models import Project, Role, Team
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows

POLICY_EXAMPLE = {
    "id": 3,
    "team": "acme",
    "name": "Notebooks",
    "position": 10,
    "enabled": True,
    "project": "vision",
    "account": None,
    "provider": "",
    "tenancy": "",
    "label_name": "",
    "label_value": "",
    "excluded": [],
    "mode": "interactive",
    "window_from": "fixed",
    "window_minutes": 60,
    "recommended_minutes": None,
    "recommended_at": None,
    "wrong_stop_gpu_hours": None,
    "restart_minutes": 20,
    "limits": {"cpu_percent": 20.0},
    "action": "stop",
    "grace_minutes": 30,
    "warn_minutes": [10],
    "accept_loss": False,
    "stop_without_hook": False,
    "hook_minutes": 10,
    "office_days": [0, 1, 2, 3, 4],
    "office_from": "09:00:00",
    "office_until": "18:00:00",
    "time_zone": "",
    "holidays": "DE",
    "max_age_hours": 72,
    "delete_after_days": None,
    "delete_consent_at": None,
    "delete_consent_by": None,
    "revision": 1,
    "created_at": "2026-11-30T12:20:00Z",
    "changed_at": "2026-11-30T12:20:00Z",
    "stops": True,
    "says": "Machines of Vision idle for 1 h are stopped 30 min after a warning, outside 09:00–18:00 on workdays in Germany.",
}
WHOLE_EXAMPLE = {**POLICY_EXAMPLE, "machines": [17, 18]}


@extend_schema_serializer(examples=[OpenApiExample("policy", POLICY_EXAMPLE)])
class IdlePolicySerializer(serializers.ModelSerializer[IdlePolicy]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    project = serializers.CharField(source="project.slug", default=None, allow_null=True, help_text="Its slug.")
    account = serializers.IntegerField(source="account_id", allow_null=True, help_text="An account's id.")
    excluded = serializers.SerializerMethodField(help_text="Ids of machines that it does not cover.")
    limits = serializers.DictField(child=serializers.FloatField(), help_text="Thresholds that are not the defaults.")
    warn_minutes = serializers.ListField(child=serializers.IntegerField(), help_text="Reminders, before the stop.")
    office_days = serializers.ListField(child=serializers.IntegerField(), help_text="0 is Monday.")
    delete_consent_by = serializers.CharField(
        source="delete_consent_by.username", default=None, allow_null=True, help_text="A user name."
    )
    stops = serializers.SerializerMethodField(help_text="Whether it acts now: beyond telling, and with a time to wait.")
    says = serializers.SerializerMethodField(help_text="All of it in a sentence.")

    class Meta:
        model = IdlePolicy
        fields = list(POLICY_EXAMPLE)

    def get_excluded(self, policy: IdlePolicy) -> list[int]:
        return sorted(machine.pk for machine in policy.excluded.all())

    def get_stops(self, policy: IdlePolicy) -> bool:
        return stops(policy)

    def get_says(self, policy: IdlePolicy) -> str:
        return sentence(policy)


@extend_schema_serializer(examples=[OpenApiExample("policy", WHOLE_EXAMPLE)])
class WholeIdlePolicySerializer(IdlePolicySerializer):
    machines = serializers.SerializerMethodField(help_text="Ids of the machines that are judged by it now.")

    class Meta(IdlePolicySerializer.Meta):
        fields = list(WHOLE_EXAMPLE)

    @extend_schema_field({"type": "array", "items": {"type": "integer"}})
    def get_machines(self, policy: IdlePolicy) -> list[int]:
        found = judged_by(list(rented(policy.team)))
        return sorted(pk for pk, judged in found.items() if judged.policy == policy)


def whole(low: int, high: int, help_text: str, *, allow_null: bool = False) -> serializers.IntegerField:
    return serializers.IntegerField(
        min_value=low, max_value=high, required=False, allow_null=allow_null, help_text=help_text
    )


def word(length: int, help_text: str) -> serializers.CharField:
    return serializers.CharField(max_length=length, required=False, allow_blank=True, help_text=help_text)


class IdlePolicyFields(Body[dict[str, Any]]):
    name = serializers.CharField(max_length=80, required=False, help_text="By which warnings tell of it.")
    enabled = serializers.BooleanField(required=False)
    project = serializers.CharField(max_length=60, required=False, allow_null=True, help_text="A project's slug.")
    account = whole(1, BIGGEST_ID, "An account's id.", allow_null=True)
    provider = word(40, "As in runpod; empty: any.")
    tenancy = serializers.ChoiceField(choices=choices(TENANCIES), required=False, allow_blank=True)
    label_name = word(80, "A label, ours or the provider's; empty: none.")
    label_value = word(200, "Empty: with any value.")
    excluded = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=BIGGEST_ID), max_length=500, required=False,
        help_text="Ids of machines; the next policy that covers one counts for it.",
    )  # fmt: skip
    mode = serializers.ChoiceField(choices=UseMode.choices, required=False)
    window_from = serializers.ChoiceField(choices=IdleWindowFrom.choices, required=False)
    window_minutes = whole(5, 10_080, "Idle for so long.")
    wrong_stop_gpu_hours = serializers.FloatField(
        required=False, allow_null=True, help_text="null: restart_minutes times a machine's GPUs."
    )
    restart_minutes = whole(1, 1440, "From a start until work goes on.")
    limits = serializers.DictField(
        child=serializers.FloatField(), required=False, help_text="Thresholds by name, all of them; those left out are the defaults."
    )  # fmt: skip
    action = serializers.ChoiceField(choices=IdleAction.choices, required=False)
    grace_minutes = whole(5, 10_080, "From the accepted warning to the stop.")
    warn_minutes = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=10_080), max_length=5, required=False
    )
    accept_loss = serializers.BooleanField(required=False, help_text="Also where a stop loses data.")
    stop_without_hook = serializers.BooleanField(required=False, help_text="Also where its preparation fails.")
    hook_minutes = whole(1, 60, "For the machine's own preparation.")
    office_days = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=6), max_length=7, required=False, help_text="0 is Monday."
    )
    office_from = serializers.TimeField(required=False, allow_null=True)
    office_until = serializers.TimeField(required=False, allow_null=True, help_text="Earlier: on the next day.")
    time_zone = word(64, "Empty: the team's.")
    holidays = word(10, "A country, or with a region, as in DE-BY; empty: none.")
    max_age_hours = whole(1, 8784, "null: no limit.", allow_null=True)
    delete_after_days = whole(1, 366, "After a stop. null: never.", allow_null=True)
    confirmed = serializers.BooleanField(
        required=False, default=False, help_text="Needed where it is to stop or terminate, and not as it did before."
    )
    delete_consent = serializers.BooleanField(
        required=False, allow_null=True, default=None, help_text="Agrees, or no more, that they are deleted. Only a person can."
    )  # fmt: skip


@extend_schema_serializer(
    examples=[
        OpenApiExample("of a project", {"name": "Notebooks", "project": "vision", "action": "stop", "confirmed": True})
    ]
)
class NewIdlePolicy(IdlePolicyFields):
    name = serializers.CharField(max_length=80, help_text="By which warnings tell of it.")


@extend_schema_serializer(examples=[OpenApiExample("only tell", {"action": "alert"})])
class IdlePolicyChanges(IdlePolicyFields):
    """Only what is to change. A change of which machines or days takes back the consent that they are deleted."""


@extend_schema_serializer(examples=[OpenApiExample("earlier", {"direction": "up"})])
class IdlePolicyMove(Body[dict[str, Any]]):
    direction = serializers.ChoiceField(choices=["up", "down"])


class IdlePolicyFilter(django_filters.FilterSet):
    enabled = FlagFilter("enabled", help_text="Whether it is switched on.")
    account = IdsFilter(help_text="Ids of accounts, separated by commas: policies of one of them.")
    action = WordsFilter(choices=IdleAction.choices, help_text="What they do, separated by commas.")


class IdlePolicyViewSet(WritableRows[IdlePolicy]):
    """What is done with machines that are idle. Of a machine the first that covers it counts, by `position`. Admins write them.

    A machine that none covers is judged, and nothing is told or done. One of them has the `machines` that are judged by it now.
    """

    write_role = Role.ADMIN
    queryset = IdlePolicy.objects.filter(removed_at=None).select_related(*RELATED).prefetch_related("excluded")
    serializer_class = IdlePolicySerializer
    filterset_class = IdlePolicyFilter
    orderings = ("position", "id", "name", "-created_at")
    bodies = {"create": NewIdlePolicy, "partial_update": IdlePolicyChanges, "move": IdlePolicyMove}
    answers = {
        "create": (status.HTTP_201_CREATED, IdlePolicySerializer),
        "partial_update": (status.HTTP_200_OK, IdlePolicySerializer),
        "move": (status.HTTP_200_OK, IdlePolicySerializer),
    }

    def get_serializer_class(self) -> type[IdlePolicySerializer]:
        return WholeIdlePolicySerializer if self.action == "retrieve" else IdlePolicySerializer

    def create(self, request: Request) -> Response:
        """Adds a policy behind all others. Left out, it only tells, of every machine, after 60 quiet minutes."""
        asked, team = self.body(request), one_team(request, role=Role.ADMIN)
        return self.answer(self._saved(request, team, asked, None), status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        """Changes what is sent and keeps the rest."""
        policy, asked = self.get_object(), self.body(request)
        return self.answer(self._saved(request, policy.team, asked, policy))

    def destroy(self, request: Request, pk: str) -> Response:
        """Removes it: its machines are judged by the next policy that covers them."""
        remove_policy(actor=self.actor(request), policy=self.get_object(), now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @action(detail=True, methods=["post"])
    def move(self, request: Request, pk: str) -> Response:
        """Changes places with the policy before or after it."""
        policy, up = self.get_object(), self.body(request)["direction"] == "up"
        if not move_policy(actor=self.actor(request), policy=policy, up=up, now=timezone.now()):
            text = _("There is no policy to change places with.")
            raise NamedProblem(text, code="at_the_end", status_code=status.HTTP_409_CONFLICT, field=None)
        return self.answer(self.get_queryset().get(pk=policy.pk))

    def _saved(self, request: Request, team: Team, asked: dict[str, Any], policy: IdlePolicy | None) -> IdlePolicy:
        words = {name: asked.pop(name) for name in ("confirmed", "delete_consent")}
        known = PolicySaid.of(policy) if policy else PolicySaid(name=asked["name"])
        said = replace(known, **rows_named(team, asked))
        with naming_form_fields():
            saved = save_policy(
                actor=self.actor(request), team=team, said=said, now=timezone.now(), policy=policy, **words
            )
        return self.get_queryset().get(pk=saved.pk)


def rows_named(team: Team, asked: dict[str, Any]) -> dict[str, Any]:
    """As PolicySaid takes it. Raises ValidationError, by field, for what is not of the team."""
    ways: dict[str, tuple[QuerySet[Any], str]] = {
        "project": (Project.objects.filter(team=team), "slug"),
        "account": (ProviderAccount.objects.filter(team=team).defer("credentials"), "pk"),
    }
    found = dict(asked)
    for field, (rows, key) in ways.items():
        if found.get(field) is not None:
            found[field] = rows.filter(**{key: found[field]}).first()
            if found[field] is None:
                raise ValidationError({field: _("Not found: %(ids)s.") % {"ids": asked[field]}})
    kinds: dict[str, type[Any]] = {"excluded": frozenset, "warn_minutes": tuple, "office_days": tuple}
    return {name: kinds[name](value) if name in kinds else value for name, value in found.items()}
