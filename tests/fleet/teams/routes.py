"""Every address under /t/<team>/, whoever registered it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver

# Places that take a word, the same in every team.
WORDS = {
    "settings/channels/new": "slack",
    "settings/providers/new": "aws",
    "instances/<int:pk>/act": "stop",
    "alerts/rules": "gpu_lost",
    "costs/anomalies": "costs_burn_rate",
    "api/v1/anomaly-rules": "costs_burn_rate",
    "costs/report": "2026-01",
    "api/v1/alert-rules": "gpu_lost",
}
PLACE = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True)
class Route:
    name: str
    path: str

    @property
    def kinds(self) -> list[str]:
        """What the address takes: for `t/<slug:team_slug>/holds/<int:pk>/release/` it is `holds`, the way to the place."""
        return [way for way, part in self.ways() if PLACE.search(part) and way != "t"]

    def ways(self) -> Iterator[tuple[str, str]]:
        way: list[str] = []
        for part in self.path.split("/"):
            yield "/".join(way), part
            way = [] if part == "<slug:team_slug>" else [*way, part]

    def at(self, team: str, things: Mapping[str, object]) -> str:
        parts = (PLACE.sub(str(team if way == "t" else things.get(way, "")), part) for way, part in self.ways())
        return "/" + "/".join(parts)


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
