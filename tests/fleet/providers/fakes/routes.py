"""Which of a fake's methods answers which path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.fleet.providers.fakes.server import Answer, Request

Method = TypeVar("Method", bound=Callable[..., Answer])


@dataclass(frozen=True)
class Route:
    method: str
    parts: tuple[str, ...]
    act: str | Callable[[Request], str]
    call: str

    def match(self, method: str, path: str) -> tuple[str, ...] | None:
        """The values of the path's places."""
        given = path.strip("/").split("/")
        if method != self.method or len(given) != len(self.parts):
            return None
        pairs = list(zip(self.parts, given, strict=True))
        if any(part not in {"{}", word} for part, word in pairs):
            return None
        return tuple(word for part, word in pairs if part == "{}")

    def act_of(self, request: Request) -> str:
        return self.act if isinstance(self.act, str) else self.act(request)


def route(method: str, path: str, act: str | Callable[[Request], str]) -> Callable[[Method], Method]:
    """Marks a fake's method as the answer to a path; "{}" stands for a place.

    `act` is what the suite calls it: verify, list, find, create, start, stop, terminate, reboot, offers, images, save_image, balance,
    metrics, notices, charges, or a word of the fake's own for what else an adapter reads.
    """

    def mark(function: Method) -> Method:
        function.__dict__["route"] = (method, path, act)
        return function

    return mark


def routes_of(fake: type[Any]) -> list[Route]:
    """Literal paths first."""
    marked = [(name, vars(getattr(fake, name))["route"]) for name in dir(fake) if is_route(getattr(fake, name))]
    routes = [Route(method, tuple(path.strip("/").split("/")), act, name) for name, (method, path, act) in marked]
    return sorted(routes, key=lambda candidate: candidate.parts.count("{}"))


def is_route(member: Any) -> bool:
    return "route" in getattr(member, "__dict__", {})
