"""The machines to choose from, each with its GPUs and with what speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.html import format_html, format_html_join

from fleet.inventory.models import Instance
from jobs.plans.machines import MachineFit


class MachinesField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # generic in the stubs alone
    """`fits`: by the machine's id; a machine without one is shown by its name and GPUs."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.fits: Mapping[int, MachineFit] = {}

    def label_from_instance(self, obj: Instance) -> str:
        fit = self.fits.get(obj.pk)
        gpus = f"{obj.gpu_count} × {obj.gpu_model}" if obj.gpu_count and obj.gpu_model else obj.gpu_model
        said = [(gpus, "dim-2")] if gpus else []
        said += [(str(text), "sev-warning") for text in fit.problems] if fit else []
        said += [(str(text), "dim-2") for text in fit.remarks] if fit else []
        small = format_html_join("", ' <small class="{}">{}</small>', ((kind, text) for text, kind in said))
        return format_html("<span>{}{}</span>", obj.name, small)
