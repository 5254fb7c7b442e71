"""Every address under /t/<team>/, whoever registered it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from django.urls import URLPattern, URLResolver, get_resolver

PLACE = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True)
class Route:
    name: str
    path: str

    @property
    def kinds(self) -> list[str]:
        """What the address takes: for `instances/<int:pk>/` it is `instances`, the word before the place."""
        parts = self.path.split("/")
        return [before for before, part in pairwise(parts) if PLACE.search(part) and before != "t"]

    def at(self, team: str, things: dict[str, object]) -> str:
        before, address = "", []
        for part in self.path.split("/"):
            value = team if before == "t" else things.get(before, "")
            address.append(PLACE.sub(str(value), part))
            before = part
        return "/" + "/".join(address)


def walk(patterns: list[URLPattern | URLResolver], prefix: str = "") -> Iterator[Route]:
    for pattern in patterns:
        path = prefix + str(pattern.pattern).removeprefix("^").removesuffix("$")
        if isinstance(pattern, URLResolver):
            yield from walk(pattern.url_patterns, path)
        else:
            yield Route(pattern.name or path, path)


def all_routes() -> list[Route]:
    return list(walk(get_resolver().url_patterns))


def team_routes() -> list[Route]:
    return [route for route in all_routes() if route.path.startswith("t/<slug:team_slug>/")]
