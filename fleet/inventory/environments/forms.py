"""What people type of an environment."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.inventory.environments.models import Environment
from fleet.inventory.environments.typed import packages_of_text, text_of_packages, typed_versions
from fleet.inventory.environments.versions import SINGLE
from fleet.inventory.environments.writing import NEVER, EnvironmentRefused
from fleet.inventory.machine_forms import PriceField
from fleet.inventory.offers.search_form import CurrencyField
from fleet.teams.fields import LineField

MAX_TEXT = 20_000
TEXTS = ("commands", "pitfalls", "notes")


def long_text(label: Any, help_text: Any, *, rows: int, mono: bool = False) -> forms.CharField:
    attrs = {"rows": rows, "class": "input mono" if mono else "input", "spellcheck": "false" if mono else "true"}
    widget = forms.Textarea(attrs=attrs)
    return forms.CharField(
        label=label, required=False, max_length=MAX_TEXT, strip=False, help_text=help_text, widget=widget
    )


class EnvironmentForm(forms.Form):
    """`seen` is when it was last changed, as the page showed it."""

    name = LineField(label=_("Name"), max_length=300)
    reference = LineField(
        label=_("Container image"), max_length=300, required=False, help_text=_("what it starts from")
    )
    driver = LineField(label=_("Driver"), max_length=60, required=False, help_text=_("where the image brings its own"))
    cuda = LineField(
        label="CUDA", max_length=60, required=False, help_text=_("the toolkit beside torch: nvcc's version")
    )
    cudnn = LineField(label="cuDNN", max_length=60, required=False)
    nccl = LineField(label="NCCL", max_length=60, required=False)
    python = LineField(label="Python", max_length=60, required=False)
    packages = long_text(_("Packages"), _("one a line, like torch==2.8.0+cu128"), rows=5, mono=True)
    price_per_month = PriceField(
        label=_("Costs a month"), help_text=_("what keeping the image costs; empty = not known")
    )
    currency = CurrencyField(label=_("Currency"), initial="USD")
    commands = long_text(_("Launch commands"), _("how work is started on it"), rows=6, mono=True)
    pitfalls = long_text(_("Pitfalls"), _("what went wrong, and what helped; those of the tables are added"), rows=4)
    notes = long_text(_("Notes"), "", rows=4)
    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, of_image: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if of_image:
            # The provider names it.
            del self.fields["name"], self.fields["reference"]

    @staticmethod
    def initial_of(row: Environment) -> dict[str, Any]:
        typed = row.typed
        return {
            "name": row.name,
            "reference": row.reference,
            **{name: typed.get(name, "") for name in SINGLE},
            "packages": text_of_packages(typed.get("frameworks", {})),
            "price_per_month": row.price_per_month,
            "currency": row.currency,
            **{name: getattr(row, name) for name in TEXTS},
            "seen": row.edited_at.isoformat() if row.edited_at else "",
        }

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        try:
            packages = packages_of_text(given.get("packages", ""))
            given["typed"] = typed_versions({name: given.get(name, "") for name in SINGLE}, packages)
        except EnvironmentRefused as refusal:
            self.add_error(refusal.field, str(refusal))
        return given

    def values(self) -> dict[str, Any]:
        """Only of a valid form."""
        given = self.cleaned_data
        names = [name for name in ("name", "reference") if name in self.fields]
        values = {name: given[name] for name in (*names, "typed", "price_per_month")}
        texts = {name: given[name].replace("\r\n", "\n") for name in TEXTS}
        return {**values, **texts, "currency": given["currency"] or "USD"}

    def seen_at(self) -> datetime:
        """What is no moment, the page never wrote: it counts as never seen."""
        try:
            return datetime.fromisoformat(self.cleaned_data["seen"]).astimezone(UTC)
        except (ValueError, OverflowError):
            return NEVER


class PlaceForm(forms.Form):
    """On what an image is to run: a machine, or a GPU with or without its driver."""

    on = forms.CharField(required=False, max_length=20)
    gpu = LineField(required=False, max_length=60)
    driver = LineField(required=False, max_length=60)
