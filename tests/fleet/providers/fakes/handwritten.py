"""Descriptions written by hand, for providers that publish none that may be kept: the operations used, their answers and their bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.fleet.providers.fakes.description import Description

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TRUTH: Schema = {"type": "boolean"}
TEXTS: Schema = {"type": "array", "items": TEXT}


def thing(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    return {"type": "object", "required": [*required], "properties": {**required, **(optional or {})}}


def many(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def nullable(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


@dataclass(frozen=True)
class Said:
    """What one operation takes and gives. `answer` None: no body."""

    answer: Schema | None = None
    status: int = 200
    query: tuple[str, ...] = ()
    body: Schema | None = None


def written(operations: Mapping[str, Said], error: Schema) -> Description:
    """`operations` by "GET /path/{place}"; `error` is the form of every other answer."""
    paths: dict[str, dict[str, Any]] = {}
    for name, said in operations.items():
        method, path = name.split()
        operation: dict[str, Any] = {
            "parameters": [{"name": query, "in": "query"} for query in said.query],
            "responses": {
                str(said.status): {"content": {"application/json": {"schema": said.answer}}}
                if said.answer
                else {"description": "no body"},
                "default": {"content": {"application/json": {"schema": error}}},
            },
        }
        if said.body:
            operation["requestBody"] = {"content": {"application/json": {"schema": said.body}}}
        paths.setdefault(path, {})[method.lower()] = operation
    return Description({"openapi": "3.1.0", "paths": paths})
