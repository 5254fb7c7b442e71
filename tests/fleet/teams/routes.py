"""Every address under /t/<team>/, whoever registered it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver

PLACE = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True)
class Route:
    name: str
    path: str

    @property
    def places(self) -> list[str]:
        return [place for place in PLACE.findall(self.path) if place != "team_slug"]

    def at(self, team: str, values: dict[str, object]) -> str:
        return "/" + PLACE.sub(lambda match: str({"team_slug": team, **values}[match[1]]), self.path)


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
