"""Bills and their lines over the API: taken, asked for, read."""

from __future__ import annotations

import base64
import binascii
from typing import Any
from zoneinfo import available_timezones

from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _
from django_filters import rest_framework as django_filters
from drf_spectacular.utils import OpenApiExample, extend_schema_serializer
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from fleet.costs.bills.asking import ask_for_bill
from fleet.costs.bills.files.cells import Fault
from fleet.costs.bills.files.columns import NEEDED, OURS
from fleet.costs.bills.files.reading import Sheet
from fleet.costs.bills.files.tables import MAX_BYTES
from fleet.costs.bills.models import Bill, BillLine, BillSource, BillState
from fleet.costs.bills.taking import Taken, found_in_file, preview, take_bill
from fleet.costs.bills.uploads import sheet_of
from fleet.inventory.models import ProviderAccount
from fleet.providers.base import ChargeKind
from fleet.rest.bodies import Body
from fleet.rest.filters import BIGGEST_ID, FlagFilter, IdsFilter, MomentFilter, WordsFilter, words
from fleet.teams.scoping import TeamRows
from fleet.teams.writing import WritableRows

BILL_EXAMPLE: dict[str, Any] = {
    "id": 7,
    "team": "acme",
    "account": 2,
    "source": "focus",
    "file_name": "november.csv",
    "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "starts_at": "2026-11-01T00:00:00Z",
    "ends_at": "2026-12-01T00:00:00Z",
    "line_count": 412,
    "state": "current",
    "imported_at": "2026-12-02T08:00:00Z",
    "imported_by": "alice",
}
LINE_EXAMPLE: dict[str, Any] = {
    "id": 9001,
    "team": "acme",
    "account": 2,
    "bill": 7,
    "key": "/v2/billing/pods:p1a2:2026-11-01T00:00:00+00:00:gpuAmount",
    "kind": "compute",
    "raw_kind": "gpuAmount",
    "instance": 17,
    "external_id": "p1a2",
    "resource": "",
    "starts_at": "2026-11-01T00:00:00Z",
    "ends_at": "2026-11-02T00:00:00Z",
    "amount": "71.760000000000",
    "currency": "USD",
    "quantity": None,
    "unit": "",
    "description": "",
    "superseded_by": None,
}
TAKEN_EXAMPLE = {"bill": 7, "new": 410, "changed": 2, "dropped": 0, "same": 0, "again": False}


@extend_schema_serializer(examples=[OpenApiExample("bill", BILL_EXAMPLE)])
class BillSerializer(serializers.ModelSerializer[Bill]):
    team = serializers.CharField(source="team.slug", help_text="Its address (slug).")
    imported_by = serializers.CharField(
        source="imported_by.username",
        default=None,
        allow_null=True,
        help_text="A user name; null for a token, and where the provider was asked.",
    )

    class Meta:
        model = Bill
        fields = list(BILL_EXAMPLE)


@extend_schema_serializer(examples=[OpenApiExample("line", LINE_EXAMPLE)])
class BillLineSerializer(serializers.ModelSerializer[BillLine]):
    team = serializers.CharField(source="account.team.slug", help_text="Its address (slug).")
    superseded_by = serializers.IntegerField(
        source="superseded_by_id", allow_null=True, help_text="The bill that says it anew or drops it; null: it counts."
    )

    class Meta:
        model = BillLine
        fields = list(LINE_EXAMPLE)


@extend_schema_serializer(examples=[OpenApiExample("taken", TAKEN_EXAMPLE)])
class TakenSerializer(serializers.Serializer[Taken]):
    bill = serializers.IntegerField(
        source="bill.pk", default=None, allow_null=True, help_text="Null: nothing was written."
    )
    new = serializers.IntegerField(help_text="Lines that were not here.")
    changed = serializers.IntegerField(help_text="Lines that say something new; the old ones are kept.")
    dropped = serializers.IntegerField(help_text="Lines that no longer count, as this bill does not have them.")
    same = serializers.IntegerField(help_text="Lines that are here already.")
    again = serializers.BooleanField(help_text="Whether this very bill was taken before.")


@extend_schema_serializer(
    examples=[
        OpenApiExample(
            "own columns", {"account": 2, "text": "amount,start,machine,kind\n48.00,2026-11-01,p1a2,compute\n"}
        )
    ]
)
class NewBill(Body[dict[str, Any]]):
    """A file: CSV as `text`, or anything as `content_base64`. Taken whole or not at all."""

    account = serializers.IntegerField(min_value=1, max_value=BIGGEST_ID, help_text="An account's id.")
    file_name = serializers.CharField(max_length=200, required=False, allow_blank=True, help_text="For people.")
    text = serializers.CharField(
        max_length=MAX_BYTES,
        required=False,
        trim_whitespace=False,
        help_text="CSV in FOCUS's, Rackrent's or an invoice's columns.",
    )
    content_base64 = serializers.CharField(
        max_length=MAX_BYTES * 4 // 3 + 4, required=False, help_text="The file's bytes, such as Parquet."
    )
    time_zone = serializers.CharField(
        max_length=64, required=False, help_text="Of times that name none; UTC unless told."
    )
    complete = serializers.BooleanField(
        required=False,
        default=True,
        help_text="Whether it is the whole bill of its months: what it lacks no longer counts.",
    )
    columns = serializers.DictField(
        child=serializers.CharField(max_length=100),
        required=False,
        help_text=f"Which column is what, for other files: {', '.join(NEEDED)} and, if there, {', '.join(OURS[2:])}.",
    )
    dry_run = serializers.BooleanField(required=False, default=False, help_text="Only say what would be done.")

    def validate_time_zone(self, value: str) -> str:
        if value not in available_timezones():
            raise ValidationError(_("Give a name such as Asia/Shanghai."))
        return value

    def validate_columns(self, value: dict[str, str]) -> dict[str, str]:
        if unknown := set(value) - set(OURS):
            raise ValidationError(_("There is no such column: %(name)s.") % {"name": min(unknown)[:60]})
        return value

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if ("text" in given) == ("content_base64" in given):
            raise ValidationError({"text": _("Give the file as text or as content_base64.")})
        given["content"] = self._content(given)
        return given

    def _content(self, given: dict[str, Any]) -> bytes:
        if "text" in given:
            return str(given["text"]).encode()
        try:
            return base64.b64decode(given["content_base64"], validate=True)
        except (binascii.Error, ValueError):
            raise ValidationError({"content_base64": _("This is no base64.")}) from None


@extend_schema_serializer(examples=[OpenApiExample("ask", {"account": 2})])
class AskBody(Body[dict[str, Any]]):
    account = serializers.IntegerField(min_value=1, max_value=BIGGEST_ID, help_text="An account's id.")


@extend_schema_serializer(examples=[OpenApiExample("asked", {"account": 2}, status_codes=["202"])])
class AskedSerializer(serializers.Serializer[Any]):
    account = serializers.IntegerField(help_text="The account that is asked within a minute.")


class BillFilter(django_filters.FilterSet):
    account = IdsFilter(help_text="Ids of accounts, separated by commas.")
    source = WordsFilter(choices=BillSource.choices, help_text="How it came, separated by commas.")
    state = WordsFilter(choices=BillState.choices, help_text="Whether lines of it count.")


class BillViewSet(WritableRows[Bill]):
    """Bills as they were imported, or as providers answered. docs/bills.md says how they are compared."""

    http_method_names = ["get", "post", "head"]
    queryset = Bill.objects.select_related("team", "imported_by")
    serializer_class = BillSerializer
    filterset_class = BillFilter
    orderings = ("-imported_at", "id", "starts_at")
    bodies = {"create": NewBill, "ask": AskBody}
    answers = {"create": (201, TakenSerializer), "ask": (202, AskedSerializer)}

    def create(self, request: Request) -> Response:
        """Takes a file. The same one twice is taken once; a fault is refused with its line and column, and nothing is written."""
        asked = self.body(request)
        account = self._account(asked["account"])
        reading = {"time_zone": asked.get("time_zone"), "columns": asked.get("columns")}
        sheet = sheet_of(asked["content"], account, reading)
        refuse_faults(sheet)
        now = timezone.now()
        found = found_in_file(
            sheet.charges,
            source=BillSource.FOCUS if sheet.is_focus else BillSource.CSV,
            content=asked["content"],
            file_name=asked.get("file_name", ""),
            complete=asked["complete"],
            now=now,
        )
        if asked["dry_run"]:
            taken = preview(account=account, found=found)
        else:
            taken = take_bill(actor=self.actor(request), account=account, found=found, now=now)
        return Response(TakenSerializer(taken).data, status=status.HTTP_201_CREATED)

    @action(detail=False, methods=["post"])
    def ask(self, request: Request) -> Response:
        """Asks the provider for its bill now instead of within a day. The answer comes later, as a bill."""
        account = self._account(self.body(request)["account"])
        if not ask_for_bill(actor=self.actor(request), account=account, now=timezone.now()):
            raise ValidationError({"account": _("This provider has no bill to ask for. Import its file.")})
        return Response({"account": account.pk}, status=status.HTTP_202_ACCEPTED)

    def _account(self, pk: int) -> ProviderAccount:
        return self.named(ProviderAccount.objects.select_related("team"), field="account", pk=pk)


def refuse_faults(sheet: Sheet) -> None:
    if sheet.faults:
        raise ValidationError({"text": [fault_text(fault) for fault in sheet.faults[:1]]})
    if not sheet.charges:
        raise ValidationError({"columns": _("Say which column is the amount and which the start.")})


def fault_text(fault: Fault) -> str:
    where = [_("line %(line)s") % {"line": fault.line}] if fault.line else []
    where += [_("column %(name)s") % {"name": fault.column}] if fault.column else []
    return f"{', '.join(where)}: {fault.text}" if where else fault.text


class BillLineFilter(django_filters.FilterSet):
    account = IdsFilter(help_text="Ids of accounts, separated by commas.")
    bill = IdsFilter(help_text="Ids of bills, separated by commas.")
    instance = IdsFilter(help_text="Ids of machines, separated by commas.")
    kind = WordsFilter(choices=words(ChargeKind), help_text="What it is for, separated by commas.")
    counts = FlagFilter(method="filter_counts", help_text="Whether it counts: no later bill says it anew or drops it.")
    since = MomentFilter("starts_at", "gte", help_text="Beginning at or after this time.")
    until = MomentFilter("starts_at", "lt", help_text="Beginning before this time.")

    def filter_counts(self, lines: QuerySet[BillLine], name: str, value: bool) -> QuerySet[BillLine]:
        return lines.filter(superseded_by__isnull=value)


class BillLineViewSet(TeamRows[BillLine]):
    """Lines of bills, those too that no longer count."""

    queryset = BillLine.objects.select_related("account__team").defer("account__credentials")
    serializer_class = BillLineSerializer
    filterset_class = BillLineFilter
    team_path = "account__team"
    orderings = ("id", "-starts_at", "-amount")
