"""The form of the planner's page, drawn from the definition of the input: what came in stays in it, right or wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from rest_framework import serializers

from planner.catalogue.models import models
from planner.web.fields import Amount, Real, Whole
from planner.web.inputs import USUAL_MODEL, input_fields

Words = Any
SERVING, TRAINING = "serving", "training"


@dataclass(frozen=True, slots=True)
class Control:
    """One field as the page draws it. `kind`: text, number, select, check, several."""

    name: str
    kind: str
    label: Words
    hint: Words
    value: Any
    options: Sequence[tuple[str, Words, bool]] = ()
    error: str = ""
    low: Any = None
    high: Any = None
    placeholder: str = ""

    @property
    def described_by(self) -> str:
        return f"hint-{self.name} error-{self.name}" if self.hint else f"error-{self.name}"


@dataclass(frozen=True, slots=True)
class Group:
    """`work`: the kind of plan that it is for, "" for both; `folded`: behind a line that opens it."""

    title: Words
    names: tuple[str, ...]
    work: str = ""
    folded: bool = False
    controls: list[Control] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        """A folded group with something in it that is not usual, or wrong."""
        return any(control.error or control.value not in {"", None, False} for control in self.controls)


GROUPS = (
    Group("", ("model",)),
    Group(
        _("The run"), ("method", "sequence_length", "global_batch", "samples", "tokens_per_sample", "epochs"), TRAINING
    ),
    Group(_("The load"), ("concurrency", "prompt_tokens", "output_tokens", "weight_format", "engine"), SERVING),
    Group(_("Choice"), ("priority", "gpu", "count", "most_gpus")),
    Group(_("Limits"), ("deadline_hours", "budget"), TRAINING, folded=True),
    Group(
        _("Latency and cache"),
        ("first_token_seconds", "seconds_per_token", "kv_dtype", "max_model_len", "memory_utilization"),
        SERVING,
        folded=True,
    ),
    Group(
        _("Details of training"),
        (
            *("compute_dtype", "optimizer", "master_weights", "lora_rank", "lora_targets", "attention"),
            *("checkpointing", "logits", "packed", "compiled"),
        ),
        TRAINING,
        folded=True,
    ),
    Group(
        _("Where to look"),
        ("price_kinds", "currency", "link", "driver", "price_per_gpu_hour", "personal_data", "gpu_ids"),
        folded=True,
    ),
    Group(
        _("Rent or buy"),
        (
            *("utilization", "years", "purchase_price", "residual_share", "watts_per_gpu", "power", "colocation_price"),
            *("electricity_price", "pue", "staff_per_year", "maintenance_share", "spares_share", "network_share"),
            *("financed_share", "interest"),
        ),
        folded=True,
    ),
    Group(_("Another model"), ("shape",), folded=True),
)


def groups_of(data: Mapping[str, Any], errors: Mapping[str, Sequence[str]]) -> list[Group]:
    """`data`: what came in, as texts; fields that are not in it show what is usual as a placeholder."""
    fields = input_fields()
    return [
        Group(
            group.title,
            group.names,
            group.work,
            group.folded,
            [_control(fields[name], data, errors) for name in group.names],
        )
        for group in GROUPS
    ]


def model_names() -> list[str]:
    return list(models())


def _control(field_: Any, data: Mapping[str, Any], errors: Mapping[str, Sequence[str]]) -> Control:
    name = field_.field_name
    base: dict[str, Any] = {
        "name": name,
        "label": field_.label,
        "hint": field_.help_text or "",
        "error": " ".join(map(str, errors.get(name, ()))),
    }
    if isinstance(field_, serializers.MultipleChoiceField):
        chosen = data.get(name, ())
        shown: Any = chosen or field_.default
        options = [(value, label, value in shown) for value, label in field_.choices.items()]
        return Control(kind="several", value=",".join(sorted(chosen)), options=options, **base)
    if isinstance(field_, serializers.BooleanField):
        return Control(**base, **_yes_or_no(field_, data.get(name)))
    if isinstance(field_, serializers.ChoiceField):
        chosen = data.get(name, field_.default)
        options = [(value, label, value == chosen) for value, label in field_.choices.items()]
        return Control(kind="select", value=data.get(name, ""), options=options, **base)
    return Control(**base, **_typed(field_, data.get(name, "")))


def _yes_or_no(field_: Any, value: Any) -> dict[str, Any]:
    """Off as it is, a box to tick; on as it is, a choice: a box that is not ticked says nothing in an address."""
    on = value is not None and str(value).lower() in {"true", "1", "on", "yes"}
    if not field_.default:
        return {"kind": "check", "value": on}
    options = [("", gettext("yes"), value is None or on), ("false", gettext("no"), value is not None and not on)]
    return {"kind": "select", "value": "" if value is None or on else "false", "options": options}


def _typed(field_: Any, value: Any) -> dict[str, Any]:
    if not isinstance(field_, Whole | Real | Amount):
        return {"kind": "text", "value": value, "placeholder": USUAL_MODEL if field_.field_name == "model" else ""}
    usual = "" if field_.default is None else f"{field_.default:,}"
    return {"kind": "number", "value": value, "low": field_.min_value, "high": field_.max_value, "placeholder": usual}
