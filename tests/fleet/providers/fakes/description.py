"""A provider's saved description of its API, to hold a fake's answers and an adapter's requests to: OpenAPI 3.0 and 3.1, Swagger 2.0."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft4Validator, Draft202012Validator
from jsonschema.exceptions import best_match
from openapi_schema_validator import OAS30Validator
from referencing import Registry
from referencing.jsonschema import DRAFT4, DRAFT202012

SPECS = Path(__file__).resolve().parents[5] / "shared" / "specs"
HERE = "urn:description"
VERBS = {"get", "put", "post", "patch", "delete"}


class Drift(AssertionError):
    """What was sent is not what the description promises."""


@cache
def load(name: str, *, closed: bool = False) -> Description | None:
    """None where the folder of descriptions is not here: the fake then answers unchecked.

    `closed`: objects have the properties that are named and no others, for descriptions that require none of them.
    """
    path = SPECS / name
    if not path.exists():
        return None
    text = path.read_text(encoding="utf-8")
    document = json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader=yaml.CSafeLoader)
    return Description(shut(document) if closed else document)


class Description:
    def __init__(self, document: dict[str, Any]) -> None:
        self._document: dict[str, Any] = absolute(document)
        self._old = document.get("swagger") == "2.0"
        specification = DRAFT4 if self._old else DRAFT202012
        self._registry: Registry[Any] = Registry().with_resource(HERE, specification.create_resource(self._document))
        self._base = document.get("basePath", "").rstrip("/")
        paths = [(self._base + path, rows) for path, rows in self._document["paths"].items()]
        # Literal paths before those with places: /v2/pods/mine is not /v2/pods/{id}.
        self._paths = [(pattern(path), rows) for path, rows in sorted(paths, key=lambda item: item[0].count("{"))]
        self._validators: dict[int, Any] = {}

    def check_request(self, method: str, path: str, query: Mapping[str, str], body: Any) -> None:
        """Raises Drift for a path, a query's name or a body that the description does not know."""
        operation = self._operation(method, path)
        parameters = [self._resolved(row) for row in operation["parameters"]]
        known = {row["name"] for row in parameters if row["in"] == "query"}
        if unknown := set(query) - known:
            raise Drift(f"{method} {path} knows no query {sorted(unknown)}")
        if missing := {row["name"] for row in parameters if row["in"] == "query" and row.get("required")} - set(query):
            raise Drift(f"{method} {path} needs the query {sorted(missing)}")
        schema = self._body_schema(operation, parameters)
        if body is not None and schema is not None:
            self._check(schema, body, f"the body of {method} {path}")

    def check_answer(self, method: str, path: str, status: int, media: str, body: Any, *, forced: bool) -> None:
        """Raises Drift. `forced`: an answer that a test ordered may have a status that the description leaves out."""
        operation = self._operation(method, path)
        responses = {str(code): row for code, row in operation["responses"].items()}
        response = responses.get(str(status)) or responses.get("default")
        if response is None:
            if forced:
                return
            raise Drift(f"{method} {path} never answers {status}")
        schema = self._answer_schema(self._resolved(response), media, f"{method} {path} {status}")
        if schema is None:
            if body is not None:
                raise Drift(f"{method} {path} {status} has no body")
            return
        self._check(schema, body, f"the answer {status} of {method} {path}")

    def _operation(self, method: str, path: str) -> dict[str, Any]:
        for regex, rows in self._paths:
            if regex.fullmatch(path.rstrip("/")) and method.lower() in rows:
                row = rows[method.lower()]
                return {**row, "parameters": [*rows.get("parameters", []), *row.get("parameters", [])]}
        raise Drift(f"no operation {method} {path} is described")

    def _body_schema(self, operation: dict[str, Any], parameters: list[dict[str, Any]]) -> Any:
        if self._old:
            return next((row["schema"] for row in parameters if row["in"] == "body"), None)
        content = self._resolved(operation.get("requestBody", {})).get("content", {})
        return content.get("application/json", {}).get("schema")

    def _answer_schema(self, response: dict[str, Any], media: str, what: str) -> Any:
        if self._old:
            return response.get("schema")
        content = response.get("content")
        if not content:
            return None
        if media not in content:
            raise Drift(f"{what} is {sorted(content)}, not {media}")
        return content[media].get("schema", {})

    def _resolved(self, node: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in node:
            node = self._registry.resolver().lookup(node["$ref"]).contents
        return node

    def _check(self, schema: Any, body: Any, what: str) -> None:
        validator = self._validators.get(id(schema))
        if validator is None:
            validator = self._validators[id(schema)] = self._validator(schema)
        error = best_match(validator.iter_errors(body))
        if error is not None:
            raise Drift(f"{what}, {error.json_path}: {error.message[:500]}")

    def _validator(self, schema: Any) -> Any:
        if self._old:
            return Draft4Validator(schema, registry=self._registry)
        if self._document["openapi"].startswith("3.0"):
            return OAS30Validator(schema, registry=self._registry)
        return Draft202012Validator(schema, registry=self._registry, format_checker=Draft202012Validator.FORMAT_CHECKER)


def shut(node: Any) -> Any:
    if isinstance(node, list):
        return [shut(item) for item in node]
    if not isinstance(node, dict):
        return node
    inner = {key: shut(value) for key, value in node.items()}
    named = inner.get("type") == "object" and "properties" in inner
    return {"additionalProperties": False, **inner} if named else inner


def absolute(node: Any) -> Any:
    """The document with every reference leading to it by name, so that any part of it can be a schema of its own."""
    if isinstance(node, dict):
        return {key: absolute(value) for key, value in node.items()}
    # Discriminators refer to schemas without saying $ref.
    if isinstance(node, str) and node.startswith("#/"):
        return HERE + node
    return [absolute(item) for item in node] if isinstance(node, list) else node


def pattern(path: str) -> re.Pattern[str]:
    literal = re.escape(path.rstrip("/"))
    return re.compile(re.sub(r"\\\{.+?\\\}", "[^/]+", literal))
