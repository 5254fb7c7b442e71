"""What a person must say before an act is begun: nothing, a name for an image, the machine's name, or why a hold does not count."""

from __future__ import annotations

import secrets
from typing import Any

from django import forms
from django.core.validators import RegexValidator
from django.utils import timezone
from django.utils.text import slugify
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from fleet.inventory.operations.models import OperationKind
from fleet.inventory.operations.preview import Preview
from fleet.inventory.operations.refusals import Refused
from fleet.teams.fields import LineField, one_line

# What every provider takes for the name of an image.
IMAGE_NAME = RegexValidator(
    r"^[A-Za-z0-9][-A-Za-z0-9._]{2,59}\Z", _("Use 3 to 60 letters, digits, hyphens, dots and underscores.")
)


class OnceForm(forms.Form):
    """A form whose second sending, by a double click or a reload, begins nothing twice."""

    key = forms.RegexField(r"^[0-9a-f]{16}\Z", widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["key"].initial = secrets.token_hex(8)

    @property
    def idempotency_key(self) -> str:
        return f"page:{self.cleaned_data['key']}"


class ActForm(OnceForm):
    """Of one act on one machine, with the fields that this act needs. `arguments()` is what the use-case takes."""

    def __init__(self, *args: Any, preview: Preview, may_override: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.preview = preview
        if preview.kind is OperationKind.SAVE_IMAGE:
            self.fields["name"] = image_name_field(preview.instance.name)
        if preview.held and may_override:
            self.fields["override_reason"] = LineField(
                label=_("Why the block does not count")
                if preview.kind is OperationKind.START
                else _("Why the hold does not count"),
                max_length=300,
                help_text=_("kept with the act and in the audit log"),
            )
        if preview.told.must_confirm:
            self.fields["machine_name"] = typed_name_field(preview.instance.name)

    def clean_machine_name(self) -> str:
        name: str = self.cleaned_data["machine_name"]
        if name != one_line(self.preview.instance.name):
            raise forms.ValidationError(
                gettext("Type “%(name)s”, the name of the machine that is meant.")
                % {"name": self.preview.instance.name}
            )
        return name

    def arguments(self) -> dict[str, Any]:
        given: dict[str, Any] = {"idempotency_key": self.idempotency_key}
        if "machine_name" in self.cleaned_data:
            given["accept_loss"] = True
        return given | {
            name: self.cleaned_data[name] for name in ("name", "override_reason") if name in self.cleaned_data
        }

    def add_refusal(self, refusal: Refused) -> None:
        """Something changed while the person read."""
        self.add_error(refusal.field if refusal.field in self.fields else None, str(refusal))


def typed_name_field(name: str) -> LineField:
    quiet = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off", "data-confirm": one_line(name)}
    return LineField(
        label=_("Type the machine’s name to confirm"),
        max_length=200,
        help_text=name,
        widget=forms.TextInput(attrs=quiet),
    )


def image_name_field(machine_name: str) -> LineField:
    stem = slugify(machine_name)[:40] or "image"
    return LineField(
        label=_("Name of the image"),
        max_length=60,
        initial=f"{stem}-{timezone.localtime():%Y%m%d-%H%M}",
        validators=[IMAGE_NAME],
    )


class BulkForm(OnceForm):
    """Of the same act on many machines. What destroys data is confirmed by typing the act and their number."""

    def __init__(self, *args: Any, phrase: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.phrase = phrase
        if phrase:
            quiet = {"autocomplete": "off", "spellcheck": "false", "autocapitalize": "off", "data-confirm": phrase}
            self.fields["phrase"] = LineField(
                label=_("Type this to confirm"), max_length=60, help_text=phrase, widget=forms.TextInput(attrs=quiet)
            )

    def clean_phrase(self) -> str:
        typed: str = self.cleaned_data["phrase"]
        if typed != self.phrase:
            raise forms.ValidationError(
                gettext("Type “%(phrase)s”: the act, and on how many machines.") % {"phrase": self.phrase}
            )
        return typed


class AbandonForm(forms.Form):
    reason = LineField(label=_("Reason"), max_length=300, help_text=_("kept with the act and in the audit log"))
