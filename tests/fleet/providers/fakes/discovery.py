"""Google's discovery documents, read as the OpenAPI that fakes are held to."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.fleet.providers.fakes.description import SPECS, Description

KEPT = {"type", "enum", "items", "properties", "additionalProperties", "$ref"}
ANY = {
    "description": "a refusal",
    "content": {"application/json": {"schema": {"type": "object", "required": ["error"]}}},
}


@cache
def discovered(name: str) -> Description | None:
    """None where the folder of descriptions is not here. Objects hold what is named and nothing else: documents require nothing."""
    path = SPECS / name
    if not path.exists():
        return None
    document = json.loads(path.read_text(encoding="utf-8"))
    methods = [method for resource in document["resources"].values() for method in resource["methods"].values()]
    paths: dict[str, Any] = {}
    for method in methods:
        place = f"/{document['servicePath']}{method['path']}"
        paths.setdefault(place, {})[method["httpMethod"].lower()] = operation(method)
    schemas = {name: schema(row) for name, row in document["schemas"].items()}
    return Description({"openapi": "3.1.0", "paths": paths, "components": {"schemas": schemas}})


def operation(method: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "parameters": [
            {"name": name, "in": row["location"], "required": row.get("required", False)}
            for name, row in method.get("parameters", {}).items()
        ],
        "responses": {"200": {"description": "", "content": content(method.get("response"))}, "default": ANY},
    }
    if "request" in method:
        told["requestBody"] = {"content": content(method["request"])}
    return told


def content(row: dict[str, Any] | None) -> dict[str, Any]:
    return {"application/json": {"schema": schema(row)}} if row else {}


def schema(row: Any) -> Any:
    """What says how values look; Google's own words around it are dropped, and "any" is any."""
    if not isinstance(row, dict):
        return row
    kept = {key: value for key, value in row.items() if key in KEPT and value != "any"}
    if "$ref" in kept:
        return {"$ref": f"#/components/schemas/{kept['$ref'].rsplit('/', 1)[-1]}"}
    if "properties" in kept:
        kept["properties"] = {name: schema(value) for name, value in kept["properties"].items()}
        kept["additionalProperties"] = False
    for name in ("items", "additionalProperties"):
        if name in kept:
            kept[name] = schema(kept[name])
    return kept
