"""Environments of images and templates over the API: versions with who says so, verdicts, runbooks to write and to export."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import (
    OpenApiExample,
    OpenApiParameter,
    extend_schema,
    extend_schema_field,
    extend_schema_serializer,
)
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.api.verdicts import (
    VERDICT_PARAMETERS,
    VERSION_EXAMPLE,
    VerdictSerializer,
    VersionSerializer,
    asked_verdict,
)
from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.runbook import EXPORTS, runbook_of
from fleet.inventory.environments.sources import environment_of, versions_of
from fleet.inventory.environments.typed import typed_versions
from fleet.inventory.environments.versions import SINGLE
from fleet.inventory.environments.writing import (
    EDITABLE,
    EnvironmentRefused,
    create_template,
    edit_environment,
    image_of_team,
    remove_environment,
)
from fleet.inventory.offers.rows import is_currency
from fleet.rest.bodies import Body, naming_fields
from fleet.rest.filters import FlagFilter, IdsFilter
from fleet.teams.fields import one_line
from fleet.teams.models import Role, Team
from fleet.teams.permissions import one_team
from fleet.teams.writing import WritableRows

MAX_TEXT = 20_000
RUNBOOK_EXAMPLE = {
    "id": 6,
    "team": "acme",
    "image": 4,
    "name": "train-cuda-13",
    "reference": "",
    "typed": {"python": "3.12", "frameworks": {"torch": "2.8.0+cu128"}},
    "typed_at": "2026-11-29T18:02:00Z",
    "typed_by": "bob",
    "carried_from": "",
    "carried_at": None,
    "price_per_month": "1.500000",
    "currency": "USD",
    "commands": "torchrun --nproc-per-node 8 train.py",
    "pitfalls": "",
    "notes": "",
    "edited_at": "2026-11-29T18:02:00Z",
    "edited_by": "bob",
}
WHOLE_EXAMPLE = {
    **RUNBOOK_EXAMPLE,
    "versions": [VERSION_EXAMPLE],
    "known_pitfalls": [
        {
            "symptom": "no-kernel-image",
            "message": "CUDA error: no kernel image is available for execution on the device",
            "text": "torch 2.8.0 for cu128 has no kernels for V100 SXM2 16GB (compute capability 7.0).",
            "fix": "Install torch 2.8, tag cu126.",
            "gpus": ["V100 SXM2 16GB"],
        }
    ],
    "verify": "nvidia-smi --query-gpu=name,driver_version --format=csv,noheader",
}


@extend_schema_serializer(examples=[OpenApiExample("runbook", RUNBOOK_EXAMPLE)])
class RunbookSerializer(serializers.ModelSerializer[Environment]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    typed = serializers.DictField(help_text="What a person typed; it counts before what machines report.")
    typed_by = serializers.CharField(source="typed_by.username", default=None, allow_null=True)
    edited_by = serializers.CharField(source="edited_by.username", default=None, allow_null=True)
    image = serializers.IntegerField(source="image_id", allow_null=True, help_text="null: a template.")

    class Meta:
        model = Environment
        fields = list(RUNBOOK_EXAMPLE)


class PitfallSerializer(serializers.Serializer[Any]):
    symptom = serializers.CharField()
    message = serializers.CharField(help_text="As the program prints it.")
    text = serializers.CharField(help_text="In the language asked for.")
    fix = serializers.CharField()
    gpus = serializers.ListField(child=serializers.CharField(), help_text="Empty: whatever the GPU.")


@extend_schema_serializer(examples=[OpenApiExample("runbook", WHOLE_EXAMPLE)])
class WholeRunbookSerializer(RunbookSerializer):
    versions = serializers.SerializerMethodField(
        help_text="Every part, with all that was said of it; the first counts."
    )
    known_pitfalls = serializers.SerializerMethodField(help_text="Those of the tables for these versions.")
    verify = serializers.SerializerMethodField(help_text="Commands that show what is there.")

    class Meta(RunbookSerializer.Meta):
        fields = list(WHOLE_EXAMPLE)

    @extend_schema_field(VersionSerializer(many=True))
    def get_versions(self, row: Environment) -> Any:
        return [VersionSerializer(line).data for line in versions_of(row).lines]

    @extend_schema_field(PitfallSerializer(many=True))
    def get_known_pitfalls(self, row: Environment) -> Any:
        return PitfallSerializer(runbook_of(row).pitfalls, many=True).data

    @extend_schema_field({"type": "string"})
    def get_verify(self, row: Environment) -> str:
        return runbook_of(row).verify


class TypedVersions(Body[dict[str, Any]]):
    """All of them: what is left out is not typed any more."""

    driver = serializers.CharField(max_length=60, required=False, help_text="Where the image brings its own.")
    cuda = serializers.CharField(max_length=60, required=False, help_text="The toolkit beside torch.")
    cudnn = serializers.CharField(max_length=60, required=False)
    nccl = serializers.CharField(max_length=60, required=False)
    python = serializers.CharField(max_length=60, required=False)
    frameworks = serializers.DictField(child=serializers.CharField(max_length=60), required=False)


class RunbookFields(Body[dict[str, Any]]):
    name = serializers.CharField(
        max_length=300, required=False, help_text="Of a template; an image has its provider's."
    )
    reference = serializers.CharField(
        max_length=300, required=False, allow_blank=True, help_text="The container image that a template starts from."
    )
    typed = TypedVersions(required=False)
    price_per_month = serializers.DecimalField(
        max_digits=14, decimal_places=6, min_value=0, required=False, allow_null=True
    )
    currency = serializers.CharField(max_length=3, required=False)
    commands = serializers.CharField(max_length=MAX_TEXT, required=False, allow_blank=True, trim_whitespace=False)
    pitfalls = serializers.CharField(max_length=MAX_TEXT, required=False, allow_blank=True, trim_whitespace=False)
    notes = serializers.CharField(max_length=MAX_TEXT, required=False, allow_blank=True, trim_whitespace=False)

    def validate_currency(self, word: str) -> str:
        if not is_currency(word.upper()):
            raise ValidationError(_("Write three letters, as USD."))
        return word.upper()

    def validate_typed(self, given: dict[str, Any]) -> dict[str, Any]:
        singles = {name: given[name] for name in SINGLE if name in given}
        try:
            return typed_versions(singles, given.get("frameworks", {}))
        except EnvironmentRefused as refusal:
            field = "frameworks" if refusal.field == "packages" else str(refusal.field)
            raise ValidationError({field: str(refusal)}) from None


@extend_schema_serializer(examples=[OpenApiExample("of an image", {"image": 4, "typed": {"python": "3.12"}})])
class NewRunbook(RunbookFields):
    image = serializers.IntegerField(min_value=1, required=False, help_text="Without it a template is made.")


@extend_schema_serializer(
    examples=[OpenApiExample("edit", {"notes": "for the lab", "edited_at": "2026-11-29T18:02:00Z"})]
)
class RunbookEdit(RunbookFields):
    edited_at = serializers.DateTimeField(
        required=False, help_text="As it was read: if it is another now, nothing is written."
    )


@extend_schema_serializer(
    examples=[OpenApiExample("requirements", {"file_name": "requirements.txt", "text": "torch==2.13.0\n"})]
)
class ExportSerializer(serializers.Serializer[dict[str, Any]]):
    file_name = serializers.CharField()
    text = serializers.CharField()


class RunbookFilter(django_filters.FilterSet):
    image = IdsFilter(help_text="Ids of images, separated by commas.")
    template = FlagFilter("image", "isnull", help_text="Whether it is a template, of no image.")
    search = django_filters.CharFilter("name", "icontains", help_text="A part of the name.")


EXPORT_AS = OpenApiParameter("as", enum=list(EXPORTS), description="markdown, if it is left out.")


class RunbookViewSet(WritableRows[Environment]):
    """What people keep of environments. One of them also has its versions, from all who told them, and known pitfalls."""

    queryset = Environment.objects.select_related("team", "typed_by", "edited_by", "image")
    serializer_class = RunbookSerializer
    filterset_class = RunbookFilter
    orderings = ("id", "name", "edited_at")
    bodies = {"create": NewRunbook, "partial_update": RunbookEdit}
    answers = {
        "verdict": (status.HTTP_200_OK, VerdictSerializer),
        "export": (status.HTTP_200_OK, ExportSerializer),
    }

    def get_serializer_class(self) -> type[RunbookSerializer]:
        return WholeRunbookSerializer if self.action == "retrieve" else RunbookSerializer

    def get_known_parameters(self) -> Any:
        if self.action == "verdict":
            return {"instance", "gpu", "driver"}
        return {"as"} if self.action == "export" else super().get_known_parameters()

    def create(self, request: Request) -> Response:
        """Of an image (its first edit makes it), or a template."""
        asked = self.body(request)
        team = one_team(request, role=Role.OPERATOR)
        image = asked.pop("image", None)
        if image is None:
            return self._template(request, team, asked)
        row = self._of_image(team, image)
        if row.pk:
            raise ValidationError({"image": _("This image has a runbook already: change that one.")})
        with naming_fields(EnvironmentRefused):
            made = edit_environment(
                actor=self.actor(request), environment=row, values=values_of(asked, row), now=timezone.now()
            )
        return self.answer(self.get_queryset().get(pk=made.pk), status.HTTP_201_CREATED)

    def partial_update(self, request: Request, pk: str) -> Response:
        """Changes what is sent and keeps the rest."""
        row, asked = self.get_object(), self.body(request)
        seen = asked.pop("edited_at", None)
        with naming_fields(EnvironmentRefused):
            edit_environment(
                actor=self.actor(request), environment=row, values=values_of(asked, row), now=timezone.now(), seen=seen
            )
        return self.answer(self.get_queryset().get(pk=row.pk))

    def destroy(self, request: Request, pk: str) -> Response:
        """Removes a template, or what was typed of an image and saved with it. What machines report stays."""
        remove_environment(actor=self.actor(request), environment=self.get_object())
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(parameters=VERDICT_PARAMETERS)
    @action(detail=True, methods=["get"])
    def verdict(self, request: Request, pk: str) -> Response:
        """Whether it runs on a machine, or on a GPU."""
        row = self.get_object()
        return Response(VerdictSerializer(asked_verdict(request, versions_of(row), team_id=row.team_id)).data)

    @extend_schema(parameters=[EXPORT_AS])
    @action(detail=True, methods=["get"])
    def export(self, request: Request, pk: str) -> Response:
        """As a file that sets it up again. None holds the address of a package index: what needs one asks for it in a variable."""
        export = EXPORTS.get(request.query_params.get("as", "markdown"))
        if export is None:
            raise ValidationError({"as": _("Give one of: %(words)s.") % {"words": ", ".join(EXPORTS)}})
        return Response({"file_name": export.file_name, "text": export.write(runbook_of(self.get_object()))})

    def _template(self, request: Request, team: Team, asked: dict[str, Any]) -> Response:
        if not asked.get("name"):
            raise ValidationError({"name": _("A template needs a name.")})
        row = Environment(team=team)
        with naming_fields(EnvironmentRefused):
            made = create_template(
                actor=self.actor(request), team=team, values=values_of(asked, row), now=timezone.now()
            )
        return self.answer(self.get_queryset().get(pk=made.pk), status.HTTP_201_CREATED)

    def _of_image(self, team: Team, pk: int) -> Environment:
        image = image_of_team(team, pk)
        if image is None:
            raise ValidationError({"image": _("Not found: %(ids)s.") % {"ids": pk}})
        return environment_of(image)


def values_of(asked: dict[str, Any], row: Environment) -> dict[str, Any]:
    """Raises ValidationError for a name of an image, which is its provider's."""
    if row.image_id and (named := next((name for name in ("name", "reference") if name in asked), None)):
        raise ValidationError({named: _("Only templates have this; an image has what its provider says.")})
    lines = {name: one_line(asked[name]) for name in ("name", "reference") if name in asked}
    values = asked | lines
    return {name: values[name] for name in EDITABLE if name in values}
