"""Verdicts over the API: what an environment is held against, and what is answered."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema_serializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from fleet.inventory.environments.verdicts import Place, Verdict, judge, place_of
from fleet.inventory.environments.versions import Line, Said, Versions
from fleet.inventory.environments.words import VERDICTS
from fleet.inventory.models import Instance
from fleet.rest.parameters import ids_of
from fleet.rest.problems import not_found

VERDICT_PARAMETERS = [
    OpenApiParameter("instance", int, description="A machine: its GPU and its driver."),
    OpenApiParameter("gpu", description="In place of a machine: the model of a GPU, like H100 SXM."),
    OpenApiParameter("driver", description="Beside `gpu`: the driver there. Without it an image's own counts."),
]
VERSION_EXAMPLE = {
    "name": "torch",
    "value": "2.8.0+cu128",
    "said": [{"value": "2.8.0+cu128", "source": "reported", "who": "train-01", "at": "2026-11-30T08:00:00Z"}],
}
VERDICT_EXAMPLE = {
    "level": "refused",
    "words": "does not work",
    "gpu_model": "V100 SXM 32 GB",
    "driver": "580.95.05",
    "remarks": [
        {
            "level": "refused",
            "text": "torch 2.8.0 for cu128 has no kernels for V100 SXM2 32GB (compute capability 7.0).",
            "fix": "Install torch 2.8, tag cu126.",
        }
    ],
    "unknown": [],
    "unchecked": [],
}


class SaidSerializer(serializers.Serializer[Said]):
    value = serializers.CharField(help_text="What an agent reports is any text: trust it like a stranger.")
    source = serializers.CharField(source="kind", help_text="typed, reported, carried or build.")  # type: ignore[assignment]
    who = serializers.CharField(help_text="A user name, the machine that reported, or the build of torch that says it.")
    at = serializers.DateTimeField(allow_null=True)


class VersionSerializer(serializers.Serializer[Line]):
    name = serializers.CharField(help_text="driver, cuda, cudnn, nccl, python, or a package.")
    value = serializers.CharField(help_text="The one that counts.")
    said = SaidSerializer(many=True)


class RemarkSerializer(serializers.Serializer[Any]):
    level = serializers.CharField()
    text = serializers.CharField(help_text="In the language asked for.")
    fix = serializers.CharField(help_text="What to do; empty where nothing is wrong.")


@extend_schema_serializer(examples=[OpenApiExample("verdict", VERDICT_EXAMPLE)])
class VerdictSerializer(serializers.Serializer[Verdict]):
    level = serializers.ChoiceField(choices=list(VERDICTS), help_text="unknown: see `unknown`.")
    words = serializers.CharField(help_text="In the language asked for.")
    gpu_model = serializers.CharField()
    driver = serializers.CharField(help_text="Empty: not known.")
    remarks = RemarkSerializer(many=True)
    unknown = serializers.ListField(child=serializers.CharField(), help_text="What is missing for a verdict.")
    unchecked = serializers.ListField(child=serializers.CharField(), help_text="Parts that the verdict leaves out.")


def asked_verdict(request: Request, versions: Versions, *, team_id: int) -> Verdict:
    return judge(versions, asked_place(request, team_id))


def asked_place(request: Request, team_id: int) -> Place:
    """A machine of the same team, or a GPU. Raises ValidationError, or 404 for a machine."""
    gpu, driver = (request.query_params.get(name, "").strip()[:60] for name in ("gpu", "driver"))
    ids = ids_of(request, "instance", most=1)
    if ids and (gpu or driver):
        raise ValidationError({"instance": _("Give a machine, or a GPU and its driver, not both.")})
    if not ids and not gpu:
        raise ValidationError({"gpu": _("Give the model of a GPU here, or a machine in `instance`.")})
    if not ids:
        return Place(gpu, driver)
    machine = Instance.objects.filter(team=team_id, pk=ids[0]).first()
    if machine is None:
        raise not_found("instance", _("Not found: %(ids)s.") % {"ids": ids[0]})
    return place_of(machine)
