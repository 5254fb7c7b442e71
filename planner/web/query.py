"""A plan is an address: the input in its shortest form, in the order of the definition, what is usual left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import QueryDict
from rest_framework import serializers

from planner.catalogue.hf_config import shape_from_config
from planner.catalogue.shape_text import text_of
from planner.web.inputs import input_fields


def query_of(given: Mapping[str, Any], **changes: Any) -> str:
    """Without the question mark. A config becomes its shape: what makes the plan is its sizes, not the text."""
    values = {**given, **changes}
    if values["config"]:
        values |= {"config": "", "shape": text_of(shape_from_config(values["config"]))}
    if values["shape"]:
        values["model"] = ""
    return urlencode(list(_pairs(values)))


def _pairs(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, field in input_fields().items():
        value = values[name]
        if name == "config":
            continue
        usual: Any = field.default
        if isinstance(field, serializers.MultipleChoiceField):
            if set(value) != usual:
                yield from ((name, each) for each in sorted(value))
        elif value is not None and value != usual:
            yield name, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return f"{value.normalize():f}" if hasattr(value, "normalize") else str(value)


def takes_several(name: str) -> bool:
    """Whether a field of the input holds a list."""
    return isinstance(input_fields().get(name), serializers.MultipleChoiceField)


def data_of(query: QueryDict) -> dict[str, Any]:
    """What an address or a form says, as a body would say it: empty means not said; names that are no fields are left out."""
    data: dict[str, Any] = {}
    for name, field in input_fields().items():
        if isinstance(field, serializers.MultipleChoiceField):
            if chosen := [value for value in query.getlist(name) if value]:
                data[name] = chosen
        elif (value := query.get(name, "").strip()) != "":
            data[name] = value
    return data
