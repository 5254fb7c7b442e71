"""What people type about machines: whole ones, who they belong to, and holds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.inventory.machines import TypedMachine
from fleet.inventory.models import Instance
from fleet.inventory.remote import SshAddress
from fleet.inventory.ways import entry_of, way_listed
from fleet.inventory.words import TENANCIES, choices
from fleet.providers.base import InstanceState
from fleet.providers.gpus import NAMES
from fleet.teams.fields import LineField
from fleet.teams.models import Project, Team, User

LABEL = re.compile(r"(?P<key>[^=,\s][^=,]{0,127})=(?P<value>[^,]{0,256})")
MAX_LABELS = 50
MAX_GPUS = 1024
MINUTES = "%Y-%m-%dT%H:%M"


class MomentInput(forms.DateTimeInput):
    input_type = "datetime-local"

    def __init__(self) -> None:
        super().__init__(format=MINUTES)


class PriceField(forms.DecimalField):
    def __init__(self, **kwargs: Any) -> None:
        super().__init__(min_value=0, max_digits=14, decimal_places=6, required=False, **kwargs)


def moment_field(label: Any, help_text: Any) -> forms.DateTimeField:
    return forms.DateTimeField(
        label=label, help_text=help_text, required=False, widget=MomentInput(), input_formats=[MINUTES]
    )


class PeopleForm(forms.Form):
    """What people may say of any machine."""

    owner = forms.ModelChoiceField(User.objects.none(), label=_("Owner"), required=False, empty_label=_("nobody"))
    project = forms.ModelChoiceField(Project.objects.none(), label=_("Project"), required=False, empty_label=_("none"))
    labels = LineField(
        label=_("Labels"), required=False, max_length=4000, help_text=_("key=value, commas between them")
    )

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        owner, project = self.fields["owner"], self.fields["project"]
        assert isinstance(owner, forms.ModelChoiceField)
        assert isinstance(project, forms.ModelChoiceField)
        owner.queryset = User.objects.filter(memberships__team=team).order_by("username")
        project.queryset = Project.objects.filter(team=team, archived_at=None).order_by("name")

    def clean_labels(self) -> dict[str, str]:
        return parse_labels(self.cleaned_data["labels"])

    def people(self) -> dict[str, Any]:
        """For update_machine and add_machine."""
        return {name: self.cleaned_data[name] for name in ("owner", "project", "labels")}


class ListedMachineForm(PeopleForm):
    managed = forms.BooleanField(
        label=_("Registered"),
        required=False,
        help_text=_("a machine that nobody registered is shown, and never touched"),
    )
    ssh_typed = LineField(
        label=_("Another way over SSH"),
        max_length=700,
        required=False,
        help_text=_("tried before the provider's address, as in ubuntu@10.0.0.4 via me@jump.example"),
    )

    def clean_ssh_typed(self) -> str:
        typed = self.cleaned_data["ssh_typed"]
        return str(way_typed(typed)) if typed else ""

    @staticmethod
    def initial_of(instance: Instance) -> dict[str, Any]:
        return {"managed": instance.managed, "ssh_typed": instance.ssh_typed, **people_of(instance)}


class TypedMachineForm(PeopleForm):
    """A machine that no provider lists."""

    name = LineField(label=_("Name"), max_length=200)
    state = forms.ChoiceField(
        label=_("State"),
        choices=[
            (InstanceState.RUNNING.value, _("running, billed in full")),
            (InstanceState.STOPPED.value, _("stopped, only disks billed")),
            (InstanceState.TERMINATED.value, _("given back, not billed")),
        ],
    )
    gpu_raw = LineField(
        label=_("GPU model"),
        max_length=120,
        required=False,
        widget=forms.TextInput(attrs={"list": "gpu-names"}),
        help_text=_("as in H100 SXM; empty for a machine without one"),
    )
    gpu_count = forms.IntegerField(label=_("Number of GPUs"), min_value=0, max_value=MAX_GPUS, required=False)
    price_per_hour = PriceField(
        label=_("Price per hour"), help_text=_("of the whole machine; empty is unknown, and unknown is not free")
    )
    storage_price_per_hour = PriceField(label=_("Disks per hour"), help_text=_("what it costs while it is stopped"))
    currency = forms.RegexField(
        r"^[A-Z]{3}$",
        label=_("Currency"),
        error_messages={"invalid": _("Write the three capital letters of a currency, for example USD.")},
    )
    tenancy = forms.ChoiceField(label=_("Shared with others"), choices=choices(TENANCIES))
    region = LineField(label=_("Place"), max_length=80, required=False, help_text=_("a data centre, a room, a desk"))
    ssh = forms.CharField(
        label=_("SSH address"),
        max_length=700,
        required=False,
        help_text=_("as in ubuntu@203.0.113.4:22, or ubuntu@10.0.0.4 via me@jump.example"),
    )
    expires_at = moment_field(_("Ends"), _("when the lease runs out"))

    field_order = (
        "name",
        "state",
        "gpu_raw",
        "gpu_count",
        "price_per_hour",
        "storage_price_per_hour",
        "currency",
        "tenancy",
        "region",
        "ssh",
        "project",
        "owner",
        "expires_at",
        "labels",
    )

    def clean_ssh(self) -> list[dict[str, Any]]:
        return parse_ssh(self.cleaned_data["ssh"].strip())

    def typed(self) -> TypedMachine:
        names = TypedMachine.__dataclass_fields__
        return TypedMachine(**{name: self.cleaned_data[name] for name in names})

    @staticmethod
    def initial_of(instance: Instance) -> dict[str, Any]:
        named = ("name", "state", "gpu_raw", "gpu_count", "currency", "tenancy", "region", "expires_at")
        prices = {name: plain(getattr(instance, name)) for name in ("price_per_hour", "storage_price_per_hour")}
        said = {name: getattr(instance, name) for name in named}
        return {**said, **prices, "ssh": ssh_text(instance.ssh), **people_of(instance)}


class HoldForm(forms.Form):
    reason = LineField(label=_("Reason"), max_length=200, help_text=_("for the others, when they wonder"))
    until = moment_field(_("Until"), _("empty holds until somebody releases it"))

    def clean_until(self) -> datetime | None:
        until: datetime | None = self.cleaned_data["until"]
        if until and until <= timezone.now():
            raise forms.ValidationError(_("That moment is past; choose one to come."))
        return until


def gpu_names() -> Iterable[str]:
    return NAMES.keys()


def people_of(instance: Instance) -> dict[str, Any]:
    labels = ", ".join(f"{key}={value}" for key, value in instance.labels.items())
    return {"owner": instance.owner_id, "project": instance.project_id, "labels": labels}


def parse_labels(text: str) -> dict[str, str]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    labels = {}
    for part in parts:
        match = LABEL.fullmatch(part)
        if not match:
            raise forms.ValidationError(gettext("“%(part)s” is not key=value.") % {"part": part[:60]})
        labels[match["key"].strip()] = match["value"].strip()
    if len(labels) > MAX_LABELS:
        raise forms.ValidationError(gettext("At most %(n)d labels fit.") % {"n": MAX_LABELS})
    return labels


def parse_ssh(text: str) -> list[dict[str, Any]]:
    return [entry_of(way_typed(text))] if text else []


def way_typed(text: str) -> SshAddress:
    """Without a name before "@", who signs in is root."""
    target, via, hops = text.partition(" via ")
    named = [
        part.strip() if "@" in part else f"root@{part.strip()}" for part in (target, *hops.split(",")) if part.strip()
    ]
    try:
        way = SshAddress.parse_way(named[0] + (f" via {', '.join(named[1:])}" if via else ""))
    except (ValueError, IndexError):
        raise forms.ValidationError(
            _("Write user@host or user@host:port, as in ubuntu@203.0.113.4:22; jump hosts follow after “via”.")
        ) from None
    return way


def ssh_text(addresses: list[dict[str, Any]]) -> str:
    if not addresses or (way := way_listed(addresses[0])) is None:
        return ""
    return str(way)


def plain(price: Any) -> Any:
    """A stored price without the zeros that only say how it is stored."""
    return None if price is None else format(price.normalize(), "f")
