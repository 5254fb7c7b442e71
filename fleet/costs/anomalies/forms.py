"""What people type about a rule. What is left empty is the rule's own value."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.alerts.rules.base import Threshold
from fleet.costs.anomalies.standing import Standing
from fleet.costs.anomalies.words import THRESHOLD_WORDS


class AnomalyRuleForm(forms.Form):
    enabled = forms.BooleanField(label=gettext_lazy("It looks for this"), required=False)

    def __init__(self, *args: Any, standing: Standing, **kwargs: Any) -> None:
        initial = {"enabled": standing.enabled, **{name: f"{value:.10g}" for name, value in standing.own.items()}}
        kwargs["initial"] = initial
        super().__init__(*args, **kwargs)
        self.standing = standing
        for threshold in standing.rule.thresholds:
            self.fields[threshold.name] = field_of(standing.kind, threshold)

    def thresholds(self) -> dict[str, float]:
        """Those that were typed."""
        names = [threshold.name for threshold in self.standing.rule.thresholds]
        return {name: self.cleaned_data[name] for name in names if self.cleaned_data.get(name) is not None}


def field_of(kind: str, threshold: Threshold) -> forms.FloatField:
    said = {"low": f"{threshold.low:g}", "high": f"{threshold.high:.10g}", "default": f"{threshold.default:g}"}
    return forms.FloatField(
        label=str(THRESHOLD_WORDS[kind, threshold.name].label),
        required=False,
        min_value=threshold.low,
        max_value=threshold.high,
        help_text=_("from %(low)s to %(high)s; empty: %(default)s") % said,
    )
