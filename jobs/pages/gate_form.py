"""What people type to set a gateway."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from jobs.book.models import Job
from jobs.gateway.manage import BOUNDS, Limits
from jobs.gateway.models import Gateway
from jobs.loadtest.models import LoadState, LoadTest


def _number(name: str, label: Any, help_text: Any = "") -> forms.IntegerField:
    low, high = BOUNDS[name]
    return forms.IntegerField(label=label, min_value=int(low), max_value=int(high), help_text=help_text)


class GatewayForm(forms.Form):
    """Names of fields are those of Limits, so that a refusal finds its own."""

    enabled = forms.BooleanField(label=_("Let callers in"), required=False, initial=True)
    most_running = _number("most_running", _("Requests at once"), _("of each replica"))
    queue_limit = _number("queue_limit", _("Waiting at most"), _("all replicas together; the rest get 429"))
    requests_per_second = forms.FloatField(
        label=_("Requests a second"),
        required=False,
        min_value=BOUNDS["requests_per_second"][0],
        max_value=BOUNDS["requests_per_second"][1],
        help_text=_("all replicas together; empty: no rate"),
    )
    timeout_seconds = _number("timeout_seconds", _("Time-out"), _("seconds until the first word, and between two"))
    retry_after_seconds = _number("retry_after_seconds", _("Retry-After"), _("seconds, for those who are turned away"))
    key_name = forms.ChoiceField(
        label=_("API key of the servers"),
        required=False,
        help_text=_("the job's variable that holds it, where they ask for one"),
    )

    def __init__(self, *args: Any, job: Job, **more: Any) -> None:
        super().__init__(*args, **more)
        names = sorted({*job.environment, *job.secret_names})
        self.fields["key_name"].choices = [("", _("none")), *((name, name) for name in names)]  # type: ignore[attr-defined]  # of a ChoiceField

    def limits(self) -> Limits:
        given = dict(self.cleaned_data)
        given.pop("enabled")
        return Limits(**given)


NAMES = ("most_running", "queue_limit", "requests_per_second", "timeout_seconds", "retry_after_seconds", "key_name")


def initial_of(job: Job, gateway: Gateway | None) -> dict[str, Any]:
    """As it is set; of a new one, as the newest load test suggests."""
    kept = gateway or Limits()
    values = {name: getattr(kept, name) for name in NAMES} | {"enabled": gateway is None or gateway.enabled}
    return values if gateway else values | suggested(job)


def suggested(job: Job) -> dict[str, Any]:
    test = job.load_tests.filter(state=LoadState.DONE).order_by("-asked_at").first()
    if test is None:
        return {}
    advice = {one["code"]: one["value"] for one in test.advice if one["value"] is not None}
    found = {"most_running": advice.get("max_concurrency"), "queue_limit": queue_of(test, advice.get("queue_limit"))}
    found |= {"requests_per_second": advice.get("requests_per_second"), "key_name": test.key_name}
    return {name: value for name, value in found.items() if value}


def queue_of(test: LoadTest, of_each: float | None) -> int | None:
    return int(of_each * test.replicas) if of_each is not None else None
