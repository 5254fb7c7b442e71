"""Acts on machines over the API: asked for, followed, given up. docs/operations.md says how they end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_field, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.inventory.api.operation_bodies import Abandoning, Act, BulkAct, Launch
from fleet.inventory.models import Instance, ProviderAccount
from fleet.inventory.operations.bulk import ARGUMENTS, Begun, request_act, request_many
from fleet.inventory.operations.closing import abandon_operation
from fleet.inventory.operations.models import OPEN_STATES, Operation, OperationEvent, OperationKind, OperationState
from fleet.inventory.operations.offered import offer_of
from fleet.inventory.operations.refusals import NotAdmin, Refused
from fleet.inventory.operations.requests import request_launch
from fleet.inventory.operations.words import PROOFS, event_words, failure_words
from fleet.providers.base import CreateSpec
from fleet.rest.filters import FlagFilter, IdsFilter, MomentFilter, WordsFilter
from fleet.rest.problems import NamedProblem, not_found
from fleet.teams.models import Project, Role
from fleet.teams.permissions import Access
from fleet.teams.writing import WritableRows

CENT_OF_CENTS = Decimal("0.000001")
OPERATION_EXAMPLE = {
    "id": 31,
    "team": "acme",
    "account": 2,
    "instance": 17,
    "kind": "stop",
    "state": "verifying",
    "machine": "train-01",
    "requested_by": "alice",
    "requested_at": "2026-11-30T08:00:00Z",
    "override_reason": "",
    "sent_at": "2026-11-30T08:00:01Z",
    "attempts": 1,
    "accepted_at": "2026-11-30T08:00:01Z",
    "proved_at": None,
    "failed_at": None,
    "proof": "",
    "says": "",
    "seen_state": "stopping",
    "seen_billing": "full",
    "seen_at": "2026-11-30T08:00:04Z",
    "next_at": "2026-11-30T08:00:07Z",
    "error_kind": "",
    "error_detail": "",
    "price_per_hour": "32.772600",
    "currency": "USD",
    "burnt": "0.036414",
    "result_id": "",
}
WHOLE_EXAMPLE = {
    **OPERATION_EXAMPLE,
    "events": [
        {
            "at": "2026-11-30T08:00:01Z",
            "kind": "accepted",
            "says": "The provider accepted it, which proves nothing yet",
            "state": "accepted",
            "seen_state": "",
            "error_kind": "",
            "detail": "",
        }
    ],
}


@extend_schema_serializer(examples=[OpenApiExample("operation", OPERATION_EXAMPLE)])
class OperationSerializer(serializers.ModelSerializer[Operation]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    machine = serializers.CharField(source="machine_name", help_text="Its name; of a launch the one that was ordered.")
    requested_by = serializers.CharField(source="requested_label", help_text="A user name or a token.")
    says = serializers.SerializerMethodField(
        help_text="What proved it or why it failed, in the language asked for; empty while it is open."
    )
    burnt = serializers.SerializerMethodField(
        help_text="Money since it was asked for, in `currency`; null: no price is known."
    )
    proof = serializers.CharField(help_text="What showed it; `unproved`: nothing could. Empty while it is open.")

    class Meta:
        model = Operation
        fields = list(OPERATION_EXAMPLE)

    @extend_schema_field({"type": "string"})
    def get_says(self, operation: Operation) -> str:
        if operation.state == OperationState.FAILED:
            return failure_words(operation.error_kind)
        return str(PROOFS.get(operation.proof, ""))

    @extend_schema_field({"type": ["string", "null"], "format": "decimal"})
    def get_burnt(self, operation: Operation) -> str | None:
        burnt = operation.burnt(timezone.now())
        return None if burnt is None else str(burnt.quantize(CENT_OF_CENTS))


class OperationEventSerializer(serializers.ModelSerializer[OperationEvent]):
    says = serializers.SerializerMethodField(help_text="In the language asked for.")

    class Meta:
        model = OperationEvent
        fields = ["at", "kind", "says", "state", "seen_state", "error_kind", "detail"]

    @extend_schema_field({"type": "string"})
    def get_says(self, event: OperationEvent) -> str:
        return event_words(event.kind)


@extend_schema_serializer(examples=[OpenApiExample("operation", WHOLE_EXAMPLE)])
class WholeOperationSerializer(OperationSerializer):
    events = serializers.SerializerMethodField(help_text="Every step, the first first.")

    class Meta(OperationSerializer.Meta):
        fields = list(WHOLE_EXAMPLE)

    @extend_schema_field(OperationEventSerializer(many=True))
    def get_events(self, operation: Operation) -> Any:
        return OperationEventSerializer(operation.events.order_by("at", "pk"), many=True).data


class RefusalSerializer(serializers.Serializer[dict[str, Any]]):
    error = serializers.CharField(help_text="A code.")
    detail = serializers.CharField(help_text="In the language asked for.")


class BegunSerializer(serializers.Serializer[Begun]):
    instance = serializers.IntegerField(source="instance.pk")  # type: ignore[assignment]  # declared fields leave the class
    operation = OperationSerializer(allow_null=True)
    refusal = serializers.SerializerMethodField(help_text="Why nothing was begun; null where it was.")

    @extend_schema_field(RefusalSerializer(allow_null=True))
    def get_refusal(self, begun: Begun) -> dict[str, str] | None:
        return {"error": begun.refusal.code, "detail": str(begun.refusal)} if begun.refusal else None


BULK_EXAMPLE = {
    "results": [
        {"instance": 17, "operation": OPERATION_EXAMPLE, "refusal": None},
        {"instance": 18, "operation": None, "refusal": {"error": "held", "detail": "bench-02 is held by bob (sweep)."}},
    ]
}


@extend_schema_serializer(examples=[OpenApiExample("one of two", BULK_EXAMPLE)])
class BulkAnswer(serializers.Serializer[dict[str, Any]]):
    results = BegunSerializer(many=True, help_text="One for each machine, in the order of their ids.")


class OperationFilter(django_filters.FilterSet):
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    account = IdsFilter(help_text="Ids of provider accounts, separated by commas.")
    kind = WordsFilter(choices=OperationKind.choices, help_text="Kinds, separated by commas.")
    state = WordsFilter(choices=OperationState.choices, help_text="States, separated by commas.")
    open = FlagFilter(method="filter_open", help_text="Whether it is neither proved nor failed.")
    since = MomentFilter("requested_at", "gte", help_text="Asked for at or after this time.")
    until = MomentFilter("requested_at", "lt", help_text="Asked for before this time.")

    def filter_open(self, rows: Any, name: str, value: bool) -> Any:
        return rows.filter(state__in=OPEN_STATES) if value else rows.exclude(state__in=OPEN_STATES)


class OperationViewSet(WritableRows[Operation]):
    """What providers were asked to do, and what readings have shown of it. An answer of a provider proves nothing; a later reading does.

    A refusal is a 409 with a code of its own: see docs/operations.md. One of them has its steps too.
    """

    http_method_names = ["get", "post", "head"]
    queryset = Operation.objects.select_related("team", "instance", "account").defer("account__credentials")
    serializer_class = OperationSerializer
    filterset_class = OperationFilter
    orderings = ("-requested_at", "id")
    bodies = {"create": Act, "bulk": BulkAct, "launch": Launch, "abandon": Abandoning}
    answers = {
        "create": (status.HTTP_201_CREATED, OperationSerializer),
        "launch": (status.HTTP_201_CREATED, OperationSerializer),
        "bulk": (status.HTTP_200_OK, BulkAnswer),
        "abandon": (status.HTTP_200_OK, OperationSerializer),
    }

    def get_serializer_class(self) -> type[OperationSerializer]:
        return WholeOperationSerializer if self.action == "retrieve" else OperationSerializer

    def create(self, request: Request) -> Response:
        """Asks for an act on one machine. It is sent at once and followed until a reading proves it."""
        asked = self.body(request)
        machine = self.named(Instance.objects.select_related("team"), field="instance", pk=asked.pop("instance"))
        kind, more = self._act(request, asked, teams={machine.team_id})
        with refusing():
            operation = request_act(actor=self.actor(request), instance=machine, kind=kind, **more)
        return self.answer(operation, status.HTTP_201_CREATED)

    @action(detail=False, methods=["post"])
    def bulk(self, request: Request) -> Response:
        """Asks for the same act on many machines. Each is begun or refused by itself."""
        asked = self.body(request)
        machines = self._machines(asked.pop("instances"))
        kind, more = self._act(request, asked, teams={machine.team_id for machine in machines})
        begun = request_many(actor=self.actor(request), instances=machines, kind=kind, **more)
        return Response(BulkAnswer({"results": begun}, context=self.get_serializer_context()).data)

    @action(detail=False, methods=["post"])
    def launch(self, request: Request) -> Response:
        """Rents a machine from an offer of one account."""
        asked = self.body(request)
        account = self.named(ProviderAccount.objects.select_related("team"), field="account", pk=asked.pop("account"))
        project = self._project(account, asked.pop("project", ""))
        self._refuse_reason(request, asked, teams={account.team_id})
        reason = asked.pop("override_reason", "")
        spec = CreateSpec(offer_id=asked.pop("offer"), **asked)
        with refusing():
            operation = request_launch(
                actor=self.actor(request),
                account=account,
                spec=spec,
                offer=offer_of(account, spec),
                project=project,
                override_reason=reason,
            )
        return self.answer(operation, status.HTTP_201_CREATED)

    @action(detail=True, methods=["post"])
    def abandon(self, request: Request, pk: str) -> Response:
        """Ends one that cannot be proved, with a reason that is kept. Nothing is told to the provider."""
        operation, asked = self.get_object(), self.body(request)
        if not abandon_operation(actor=self.actor(request), operation=operation, reason=asked["reason"]):
            raise NamedProblem(
                _("It has ended already."), code="ended", status_code=status.HTTP_409_CONFLICT, field=None
            )
        return self.answer(self.get_queryset().get(pk=operation.pk))

    def _act(self, request: Request, asked: Mapping[str, Any], *, teams: set[int]) -> tuple[str, dict[str, Any]]:
        """The kind, and what it takes. Raises ValidationError for an argument that it does not take."""
        kind, more = asked["kind"], {name: value for name, value in asked.items() if name != "kind"}
        if strange := sorted(set(more) - ARGUMENTS[kind]):
            raise ValidationError({strange[0]: _("“%(kind)s” does not take this.") % {"kind": kind}})
        if lacking := sorted(ARGUMENTS[kind] - set(more) - OPTIONAL):
            raise ValidationError({lacking[0]: _("“%(kind)s” needs this.") % {"kind": kind}})
        self._refuse_reason(request, more, teams=teams)
        return kind, more

    def _refuse_reason(self, request: Request, asked: Mapping[str, Any], *, teams: set[int]) -> None:
        """A reason against a hold or a block is an admin's, or a token's of that scope. Raises the 409 of NotAdmin."""
        roles = Access.of_request(request).roles
        if asked.get("override_reason") and any(roles[team] is not Role.ADMIN for team in teams):
            raise refused(NotAdmin(_("Only an admin of the team may override a hold or a launch block.")))

    def _machines(self, ids: list[int]) -> list[Instance]:
        """All of them, or a refusal that names the first that is not there: a list with a slip in it begins nothing."""
        roles = Access.of_request(self.request).roles
        rows = Instance.objects.filter(pk__in=ids, team__in=roles).select_related("team").order_by("pk")
        found = list(rows)
        if missing := sorted(set(ids) - {machine.pk for machine in found}):
            raise not_found("instances", _("Not found: %(ids)s.") % {"ids": missing[0]})
        if any(roles[machine.team_id].rank < Role.OPERATOR.rank for machine in found):
            raise PermissionDenied(
                _("This needs the role %(role)s or a token of that scope.") % {"role": Role.OPERATOR.label}
            )
        return found

    def _project(self, account: ProviderAccount, slug: str) -> Project | None:
        if not slug:
            return None
        project = Project.objects.filter(team=account.team_id, slug=slug, archived_at=None).first()
        if project is None:
            raise ValidationError({"project": _("There is no project %(slug)s.") % {"slug": slug}})
        return project


OPTIONAL = frozenset({"accept_loss", "override_reason"})


def refused(refusal: Refused) -> NamedProblem:
    return NamedProblem(str(refusal), code=refusal.code, status_code=status.HTTP_409_CONFLICT, field=refusal.field)


@contextmanager
def refusing() -> Iterator[None]:
    """A refusal of a use-case as a 409 with its code."""
    try:
        yield
    except Refused as refusal:
        raise refused(refusal) from None
