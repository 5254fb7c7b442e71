"""What people type to begin a job."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from fleet.inventory.machine_forms import moment_field
from fleet.inventory.models import Instance
from fleet.providers.base import InstanceState
from fleet.teams.fields import LineField
from fleet.teams.models import Project, Team
from jobs.book.models import JobKind, WhenDone
from jobs.book.order import Order
from jobs.pages.machine_field import MachinesField
from jobs.pages.serving_fields import ServingFields, take_serving
from jobs.pages.starting import Beginning
from jobs.plans.commands import INSTALL
from jobs.plans.machines import chosen_of, fits_of

_PAIR = re.compile(r"\s*(?:export\s+)?([^=\s]+)=(.*)")


class PairsField(forms.CharField):
    """Lines of NAME=value. The value is everything behind the sign, but for quotes around all of it."""

    widget = forms.Textarea

    def __init__(self, **more: Any) -> None:
        super().__init__(
            required=False,
            max_length=70_000,
            widget=forms.Textarea({"rows": 3, "spellcheck": "false", "autocomplete": "off"}),
            **more,
        )

    def to_python(self, value: Any) -> dict[str, str]:  # type: ignore[override]  # a field's value may be of any kind
        pairs: dict[str, str] = {}
        for number, line in enumerate(str(super().to_python(value) or "").splitlines(), start=1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            found = _PAIR.fullmatch(line)
            if found is None:
                raise forms.ValidationError(_("Line %(n)d is not NAME=value."), params={"n": number})
            pairs[found[1]] = unquoted(found[2].strip())
        return pairs


def unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


class JobForm(ServingFields, forms.Form):
    """Names of fields are those of Order, so that a refusal finds its own."""

    field_order = ("name", "kind", "machines", "command", *ServingFields.base_fields)

    name = LineField(label=_("Name"), max_length=120)
    kind = forms.ChoiceField(label=_("Kind"), choices=JobKind.choices, initial=JobKind.TRAINING)
    machines = MachinesField(
        Instance.objects.none(),
        label=_("Machines"),
        help_text=_("Held from now on until the job ends. The first in the list is rank 0."),
        error_messages={"required": _("Choose at least one machine.")},
    )
    command = forms.CharField(
        label=_("Command"),
        strip=False,
        max_length=20_000,
        widget=forms.Textarea({"rows": 6, "class": "mono", "spellcheck": "false"}),
        help_text=_(
            "Run by the machine's shell in a directory of its own. NODE_RANK, NNODES, MASTER_ADDR and MASTER_PORT are set."
        ),
    )
    project = forms.ModelChoiceField(Project.objects.none(), label=_("Project"), required=False, empty_label=_("none"))
    repository = LineField(
        label=_("Repository"),
        required=False,
        max_length=500,
        help_text=_("https://…, fetched on each machine into the directory “repository”"),
    )
    revision = LineField(label=_("Revision"), required=False, max_length=100)
    upload = forms.FileField(
        label=_("Files"),
        required=False,
        allow_empty_file=True,
        help_text=_("A file, or a .tar.gz or .zip that is unpacked where the command runs"),
    )
    environment = PairsField(label=_("Environment"), help_text=_("NAME=value, one a line"))
    secrets = PairsField(
        label=_("Secrets"), help_text=_("As above. Kept encrypted, sent to the machine, and stars in the log.")
    )
    data_path = LineField(
        label=_("Data"), required=False, max_length=400, help_text=_("A path on the machines, as RACKRENT_DATA")
    )
    checkpoint_path = LineField(
        label=_("Checkpoints"),
        required=False,
        max_length=400,
        help_text=_("A path on the machines, as RACKRENT_CHECKPOINTS"),
    )
    processes_per_node = forms.IntegerField(
        label=_("Processes on each machine"), required=False, min_value=1, max_value=64
    )
    retries = forms.IntegerField(label=_("Retries"), initial=0, min_value=0, max_value=10)
    resume_arguments = LineField(
        label=_("Arguments of a retry"),
        required=False,
        max_length=400,
        help_text=_("Added to the command from the second attempt on, such as --resume"),
    )
    installs = forms.BooleanField(
        label=_("Install what it needs first"),
        required=False,
        help_text=_("Runs install.sh before the launch, once for each machine; its output is in the log"),
    )
    starts_anyway = forms.BooleanField(
        label=_("Start anyway"),
        required=False,
        help_text=_("Also on a machine of which the check says that it cannot work there"),
    )
    when_done = forms.ChoiceField(label=_("When it is done"), choices=WhenDone.choices, initial=WhenDone.IDLE)
    deadline_at = moment_field(_("Deadline"), _("Then it is stopped"))
    budget_amount = forms.DecimalField(
        label=_("Budget"),
        required=False,
        max_digits=12,
        decimal_places=2,
        help_text=_("What it may cost. An alert comes when four fifths are spent; then it is stopped. Empty for none."),
    )
    budget_currency = LineField(label=_("Currency of the budget"), required=False, max_length=3)

    def __init__(self, *args: Any, team: Team, start: Beginning | None = None, **more: Any) -> None:
        self.start = start or Beginning()
        super().__init__(*args, **{"initial": dict(self.start.initial), **more})
        machines, project = self.fields["machines"], self.fields["project"]
        assert isinstance(machines, MachinesField)
        self.fields["budget_currency"].initial = team.currency
        assert isinstance(project, forms.ModelChoiceField)
        running = Instance.objects.filter(team=team, gone_at=None, managed=True, state=InstanceState.RUNNING)
        machines.queryset = running.exclude(ssh=[]).order_by("name")
        self._offer(machines)
        project.queryset = Project.objects.filter(team=team, archived_at=None).order_by("name")
        if not any(file.get("path") == INSTALL for file in self.start.carried.get("files", ())):
            del self.fields["installs"]
        if not self.start.predicted.get("gpu"):
            del self.fields["starts_anyway"]

    def _offer(self, machines: MachinesField) -> None:
        """What speaks against each; those that fit are chosen already."""
        fits = fits_of(list(machines.queryset or ()), self.start.predicted, now=timezone.now())
        machines.fits = {fit.machine.pk: fit for fit in fits}
        if not fits:
            machines.help_text = _("No registered machine runs and can be reached over SSH.")
        if (draft := self.start.draft) is not None:
            self.initial["machines"] = chosen_of(fits, draft.machines)
            asked = ngettext_lazy("The plan takes %(n)d machine.", "The plan takes %(n)d machines.", "n")
            self.fields["command"].widget.attrs["rows"] = 18
            machines.help_text = format_lazy("{} {}", asked % {"n": draft.machines}, machines.help_text)

    def order(self) -> Order:
        given = dict(self.cleaned_data)
        given.pop("machines")
        # It is stored apart: begin.with_upload.
        given.pop("upload")
        given |= {
            "kind": JobKind(given["kind"]),
            "when_done": WhenDone(given["when_done"]),
            "deadline_at": aware(given["deadline_at"]),
            "serving": take_serving(given),
            "budget_currency": given["budget_currency"].strip().upper() if given["budget_amount"] is not None else "",
        }
        return Order(**given, **self.start.carried)


def aware(moment: datetime | None) -> datetime | None:
    return timezone.make_aware(moment) if moment is not None and timezone.is_naive(moment) else moment
