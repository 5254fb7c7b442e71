"""Amazon's own description of EC2, as botocore carries it, to hold requests and answers to."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any
from xml.etree import ElementTree as ET

from tests.fleet.providers.fakes.description import SPECS, Drift

Shape = dict[str, Any]
# What a text of each type of the description can be read as.
READ: Mapping[str, Callable[[str], object]] = {
    "integer": int,
    "long": int,
    "float": float,
    "double": float,
    "boolean": {"true": True, "false": False}.__getitem__,
    "timestamp": datetime.fromisoformat,
}
# In every request, whatever the operation; and what every answer says of itself.
ENVELOPE = {"Action", "Version"}
REQUEST_ID = "requestId"


@cache
def service2(name: str) -> Service2 | None:
    """None where the folder of descriptions is not here."""
    path = SPECS / name
    return Service2(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


class Service2:
    def __init__(self, document: dict[str, Any]) -> None:
        self._operations: dict[str, Any] = document["operations"]
        self._shapes: dict[str, Shape] = document["shapes"]

    def knows(self, action: str) -> bool:
        """The saved description keeps some operations of the whole."""
        return action in self._operations

    def check_request(self, action: str, form: Mapping[str, str]) -> None:
        """Raises Drift for a parameter that the operation does not know or misses. A word that is no choice of EC2's is refused by it."""
        shape = self._shapes[self._operations[action]["input"]["shape"]]
        for name, value in form.items():
            if name not in ENVELOPE:
                self._check_parameter(shape, name.split("."), value, f"{action} {name}")
        given = {name.split(".")[0] for name in form}
        needed = {query_name(name, shape["members"][name]) for name in shape.get("required", ())}
        if missing := needed - given:
            raise Drift(f"{action} needs {sorted(missing)}")

    def check_answer(self, action: str, answer: ET.Element) -> None:
        """Raises Drift for an element that the operation never answers, and for a text of another type than it says."""
        output = self._operations[action].get("output")
        if output:
            self._check_element(self._shapes[output["shape"]], answer, action)

    def _check_parameter(self, shape: Shape, parts: list[str], value: str, what: str) -> None:
        """`Filter.1.Value.2`: the names of members, and the places in lists."""
        if shape["type"] == "list":
            if not parts or not parts[0].isdecimal():
                raise Drift(f"{what} names no place in its list")
            self._check_parameter(self._shapes[shape["member"]["shape"]], parts[1:], value, what)
        elif shape["type"] == "structure":
            members = {query_name(name, member): member for name, member in shape["members"].items()}
            if not parts or parts[0] not in members:
                raise Drift(f"{what} is not described")
            self._check_parameter(self._shapes[members[parts[0]]["shape"]], parts[1:], value, what)
        else:
            check_text(shape, value, what)

    def _check_element(self, shape: Shape, element: ET.Element, what: str) -> None:
        if shape["type"] == "list":
            for item in element:
                self._check_element(self._shapes[shape["member"]["shape"]], item, what)
        elif shape["type"] == "structure":
            members = {member.get("locationName", name): member for name, member in shape["members"].items()}
            for child in element:
                if child.tag in members:
                    self._check_element(self._shapes[members[child.tag]["shape"]], child, f"{what}.{child.tag}")
                elif child.tag != REQUEST_ID:
                    raise Drift(f"{what} is never told {child.tag}")
        else:
            check_text(shape, element.text or "", what, shape.get("enum", ()))


def check_text(shape: Shape, text: str, what: str, choices: Sequence[str] = ()) -> None:
    try:
        READ.get(shape["type"], str)(text)
    except (ValueError, KeyError):
        raise Drift(f"{what}: {text[:100]!r} is no {shape['type']}") from None
    if choices and text not in choices:
        raise Drift(f"{what}: {text[:100]!r} is none of {choices[:20]}")


def query_name(name: str, member: Mapping[str, Any]) -> str:
    """What a request calls a member, by the rules of the protocol "ec2"."""
    if "queryName" in member:
        return str(member["queryName"])
    told = str(member.get("locationName", name))
    return told[:1].upper() + told[1:]
