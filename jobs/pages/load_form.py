"""What people type to begin a load test."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from fleet.teams.fields import LineField
from jobs.book.models import Job
from jobs.loadtest.plan import MOST_ANSWER_TOKENS, MOST_PROMPT_TOKENS, MOST_REQUESTS, MOST_STAGES, LoadPlan, Loop

LOOPS = (
    (Loop.CLOSED.value, _("so many requests at once, a new one as one ends")),
    (Loop.OPEN.value, _("so many requests begin a second, whatever becomes of them")),
)


class LevelsField(LineField):
    """Numbers between commas or blanks."""

    def to_python(self, value: Any) -> Any:
        words = str(super().to_python(value)).replace(",", " ").replace("，", " ").split()
        try:
            return tuple(float(word) for word in words[: MOST_STAGES + 1])
        except ValueError:
            raise forms.ValidationError(_("Write numbers with commas between them, such as 1, 2, 4, 8.")) from None


class LoadForm(forms.Form):
    """Names of fields are those of LoadPlan, so that a refusal finds its own; promises are typed in milliseconds."""

    loop = forms.ChoiceField(label=_("Load"), choices=LOOPS, initial=Loop.CLOSED.value)
    levels = LevelsField(
        label=_("Stages"),
        initial="1, 2, 4, 8, 16, 32",
        max_length=200,
        help_text=_("requests at once, or a second, of each stage; over all replicas"),
    )
    stage_seconds = forms.FloatField(label=_("Seconds of a stage"), initial=20, min_value=1, max_value=300)
    most_requests = forms.IntegerField(
        label=_("Requests at most"),
        initial=2_000,
        min_value=1,
        max_value=MOST_REQUESTS,
        help_text=_("of the whole test"),
    )
    prompt_tokens = forms.IntegerField(
        label=_("Tokens of a prompt"), initial=256, min_value=1, max_value=MOST_PROMPT_TOKENS, help_text=_("about")
    )
    answer_tokens = forms.IntegerField(
        label=_("Tokens of an answer"), initial=128, min_value=1, max_value=MOST_ANSWER_TOKENS, help_text=_("at most")
    )
    request_seconds = forms.FloatField(
        label=_("Time-out of a request"), initial=60, min_value=1, max_value=600, help_text=_("seconds")
    )
    promise_ttft = forms.IntegerField(
        label=_("Promised first token"),
        required=False,
        min_value=1,
        max_value=600_000,
        help_text=_("ms, kept by 95 of 100 requests; empty: nothing is promised"),
    )
    promise_tpot = forms.IntegerField(
        label=_("Promised further tokens"),
        required=False,
        min_value=1,
        max_value=600_000,
        help_text=_("ms each, kept by 95 of 100 requests"),
    )
    key_name = forms.ChoiceField(
        label=_("API key"),
        required=False,
        help_text=_("the job's variable that holds it, where the server asks for one"),
    )

    def __init__(self, *args: Any, job: Job, **more: Any) -> None:
        super().__init__(*args, **more)
        names = sorted({*job.environment, *job.secret_names})
        self.fields["key_name"].choices = [("", _("none")), *((name, name) for name in names)]  # type: ignore[attr-defined]  # of a ChoiceField

    def plan(self) -> LoadPlan:
        given = dict(self.cleaned_data)
        given.pop("key_name")
        promises = {f"{name}_seconds": seconds_of(given.pop(name)) for name in ("promise_ttft", "promise_tpot")}
        return LoadPlan(**(given | promises | {"loop": Loop(given["loop"])}))


def seconds_of(milliseconds: int | None) -> float | None:
    return milliseconds / 1_000 if milliseconds else None


def initial_of(plan: LoadPlan, key_name: str) -> dict[str, Any]:
    """To begin another like it."""
    names = ("stage_seconds", "most_requests", "prompt_tokens", "answer_tokens", "request_seconds")
    promises = {
        name: round(seconds * 1_000) if (seconds := getattr(plan, f"{name}_seconds")) else None
        for name in ("promise_ttft", "promise_tpot")
    }
    levels = ", ".join(f"{level:g}" for level in plan.levels)
    return (
        {name: getattr(plan, name) for name in names}
        | promises
        | {
            "loop": plan.loop.value,
            "levels": levels,
            "key_name": key_name,
        }
    )
