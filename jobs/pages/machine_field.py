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
        small = [gpus] if gpus else []
        small += [str(text) for text in fit.remarks] if fit else []
        mark = ' <i class="sev" data-v="warning"></i> <small>{}</small>'
        problems = format_html_join("", mark, ([str(text)] for text in fit.problems) if fit else ())
        return format_html('<span>{} <small class="dim-2">{}</small>{}</span>', obj.name, " · ".join(small), problems)
