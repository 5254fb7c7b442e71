"""What people type about a rule. What is left empty is the rule's own value."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from fleet.alerts.choices import MAX_FOR_SECONDS
from fleet.alerts.models import Severity
from fleet.alerts.standing import Limit, Standing


class RuleForm(forms.Form):
    enabled = forms.BooleanField(label=gettext_lazy("It looks for this"), required=False)
    severity = forms.ChoiceField(label=gettext_lazy("Severity"), required=False)
    for_seconds = forms.IntegerField(
        label=gettext_lazy("Tells only if it lasts for, in seconds"),
        required=False,
        min_value=0,
        max_value=MAX_FOR_SECONDS,
    )

    def __init__(self, *args: Any, standing: Standing, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.standing = standing
        severity, lasting = self.fields["severity"], self.fields["for_seconds"]
        assert isinstance(severity, forms.ChoiceField)
        own = _("as the rule says (%(severity)s)") % {"severity": Severity(standing.rule.severity).label}
        severity.choices = [("", own), *Severity.choices]
        lasting.help_text = _("empty: %(n)d") % {"n": standing.rule.for_seconds}
        for limit in standing.limits:
            self.fields[limit.threshold.name] = _field_of(limit)

    @staticmethod
    def initial_of(standing: Standing) -> dict[str, Any]:
        return {
            "enabled": standing.enabled,
            "severity": standing.own_severity or "",
            "for_seconds": standing.own_for_seconds,
            **{name: f"{value:g}" for name, value in standing.own_thresholds.items()},
        }

    def thresholds(self) -> dict[str, float]:
        """Those that were typed."""
        names = [threshold.name for threshold in self.standing.rule.thresholds]
        return {name: self.cleaned_data[name] for name in names if self.cleaned_data.get(name) is not None}

    def asked(self) -> dict[str, Any]:
        """For update_rule."""
        return {
            "enabled": self.cleaned_data["enabled"],
            "severity": self.cleaned_data["severity"] or None,
            "for_seconds": self.cleaned_data["for_seconds"],
            "thresholds": self.thresholds(),
        }


def _field_of(limit: Limit) -> forms.Field:
    threshold = limit.threshold
    said = {"low": f"{threshold.low:g}", "high": f"{threshold.high:g}", "default": f"{threshold.default:g}"}
    help_text = _("from %(low)s to %(high)s; empty: %(default)s") % said
    label, low, high = str(limit.words.label), threshold.low, threshold.high
    if threshold.is_whole:
        return forms.IntegerField(
            label=label, required=False, min_value=int(low), max_value=int(high), help_text=help_text
        )
    return forms.FloatField(label=label, required=False, min_value=low, max_value=high, help_text=help_text)
