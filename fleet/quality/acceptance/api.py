"""Acceptance tests over the API: read, and asked for."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.models import Instance
from fleet.quality.acceptance.asking import ask_acceptance
from fleet.quality.acceptance.evidence import evidence_text
from fleet.quality.models import AcceptanceReport, AcceptanceVerdict
from fleet.rest.filters import IdsFilter, MomentFilter, WordsFilter
from fleet.rest.problems import NamedProblem
from fleet.teams.writing import WritableRows
from fleet.telemetry.actions.ask import ActionError
from fleet.telemetry.actions.models import AgentAction

EXAMPLE = {
    "id": 7,
    "team": "acme",
    "instance": 17,
    "action": 31,
    "at": "2026-11-30T08:02:11Z",
    "verdict": "short",
    "checks": [
        {
            "name": "pcie_width",
            "promised": 16,
            "measured": 8,
            "unit": "lanes",
            "result": "short",
            "source": "card",
        }
    ],
    "promised": {
        "gpu_model": "L40S",
        "gpu_count": 2,
        "gpu_memory_mib": 46068,
        "vcpus": 40,
        "ram_mib": 327680,
        "disk_gb": 500,
    },
    "measured": {"gpu": {"driver": "570.124.06", "count": 2}, "cpu": {"count": 40}},
    "evidence": "Test of a rented machine\n…",
}


@extend_schema_serializer(examples=[OpenApiExample("a link that is too narrow", EXAMPLE)])
class AcceptanceReportSerializer(serializers.ModelSerializer[AcceptanceReport]):
    team = serializers.CharField(source="instance.team.slug", help_text="Its address (slug).")
    instance = serializers.IntegerField(source="instance_id", help_text="A machine's id.")  # type: ignore[assignment]  # declared fields leave the class
    action = serializers.IntegerField(
        source="action_id", allow_null=True, help_text="The agent's action that measured; null: it is kept no more."
    )
    checks = serializers.ListField(
        child=serializers.DictField(),
        help_text="What was held against what: `result` is ok, short, wrong or unknown; `source` says whose figure `promised` is; null: not known.",
    )
    promised = serializers.DictField(help_text="As the provider listed the machine then; null: it did not say.")
    measured = serializers.DictField(help_text="What the agent sent, as docs/agent-protocol.md says.")
    evidence = serializers.SerializerMethodField(help_text="The report as plain text, in the language asked for.")

    class Meta:
        model = AcceptanceReport
        fields = list(EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_evidence(self, report: AcceptanceReport) -> str:
        return evidence_text(report)


class AcceptanceReportFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    verdict = WordsFilter(choices=AcceptanceVerdict.choices, help_text="Verdicts, separated by commas.")
    since = MomentFilter(field_name="at", lookup_expr="gte", help_text="Tested at or after this time.")
    until = MomentFilter(field_name="at", lookup_expr="lt", help_text="Tested before this time.")


@extend_schema_serializer(
    examples=[OpenApiExample("a machine", {"instance": 17, "when_busy": False}, request_only=True)]
)
class AskAcceptance(serializers.Serializer[dict[str, Any]]):
    instance = serializers.IntegerField(help_text="A machine's id.")  # type: ignore[assignment]  # declared fields leave the class
    when_busy = serializers.BooleanField(
        default=False, help_text="Test also while its GPUs work, which slows the work."
    )


ASKED_EXAMPLE = {"action": 31, "instance": 17, "state": "asked", "expires_at": "2026-11-30T08:30:00Z"}


@extend_schema_serializer(examples=[OpenApiExample("asked for", ASKED_EXAMPLE, status_codes=["202"])])
class AskedAction(serializers.Serializer[AgentAction]):
    action = serializers.IntegerField(source="pk", help_text="The `action` that the report will name.")
    instance = serializers.IntegerField(source="instance_id")  # type: ignore[assignment]  # declared fields leave the class
    state = serializers.CharField(help_text="asked: it begins with the agent's next word.")
    expires_at = serializers.DateTimeField(help_text="Given up where it has not begun by then.")


class AcceptanceReportViewSet(WritableRows[AcceptanceReport]):
    """What machines were measured to be against what they were rented as. Asked for by itself once for a fresh machine."""

    http_method_names = ["get", "post", "head"]
    queryset = AcceptanceReport.objects.select_related("instance__team")
    team_path = "instance__team"
    serializer_class = AcceptanceReportSerializer
    filterset_class = AcceptanceReportFilter
    orderings = ("-at", "at", "id")
    bodies = {"create": AskAcceptance}
    answers = {"create": (status.HTTP_202_ACCEPTED, AskedAction)}

    def create(self, request: Request) -> Response:
        """Asks the machine's agent for a test; the report is a row once it has ended."""
        asked = self.body(request)
        instance = self.named(Instance.objects.select_related("team"), field="instance", pk=asked["instance"])
        try:
            action = ask_acceptance(
                actor=self.actor(request), instance=instance, when_busy=asked["when_busy"], now=timezone.now()
            )
        except ActionError as error:
            raise NamedProblem(
                str(error), code="not_offered", status_code=status.HTTP_409_CONFLICT, field="instance"
            ) from None
        return Response(AskedAction(action).data, status=status.HTTP_202_ACCEPTED)
