"""What drf-spectacular cannot see: the refusals that every operation shares."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiResponse

from fleet.rest.errors import ProblemSerializer

JSON = "application/json"
# What a write answers where its view does not say otherwise.
CODES = {"create": 201, "destroy": 204}
REFUSALS: dict[int, tuple[str, str, str, str | None]] = {
    400: ("A parameter is unknown or cannot be read.", "invalid", "Give a whole number from 1 to 500.", "limit"),
    401: (
        "No token and no session, or a token that is unknown, expired or revoked.",
        "not_authenticated",
        "Authentication credentials were not provided.",
        None,
    ),
    403: (
        "The role or scope does not reach.",
        "permission_denied",
        "This needs the role admin, or a token of scope admin.",
        None,
    ),
    404: ("No such thing, or another team owns it.", "not_found", "Not found.", None),
    429: ("Too many requests; Retry-After says for how many seconds.", "throttled", "Request was throttled.", None),
}


class Schema(AutoSchema):
    def get_override_parameters(self) -> list[Any]:
        shared = getattr(self.view, "shared_parameters", ()) if self._is_list_view() else ()
        return [*super().get_override_parameters(), *shared]

    def get_request_serializer(self) -> Any:
        bodies = getattr(self.view, "bodies", {})
        return bodies.get(self._action) if bodies else super().get_request_serializer()

    @property
    def _action(self) -> str:
        return getattr(self.view, "action", None) or ""

    def get_summary(self) -> str:
        """One line for the closed entry of the docs page: the first sentence of the action or the view, or that it is one row."""
        if getattr(self.view, "detail", False) and self.method == "GET":
            return "One of them"
        return str(self.get_description()).split(". ")[0].split("\n")[0].rstrip(".")

    def get_response_serializers(self) -> Any:
        found = super().get_response_serializers()
        own = getattr(self.view, "answers", {}).get(self._action)
        code, one = own or (CODES.get(self._action, 200), None if self._action == "destroy" else found)
        answers = found if isinstance(found, dict) else {code: one}
        refusals = {code: _refusal(code) for code in REFUSALS if code not in answers}
        # A view that also answers files (media type -> what they hold) refuses in JSON all the same.
        if files := getattr(self.view, "file_answers", None):
            in_json = {(code, JSON): answer for code, answer in {**answers, **refusals}.items()}
            return {**in_json, **{(200, kind): shape for kind, shape in files.items()}}
        return {**answers, **refusals}


def say_what_answers_hold(result: dict[str, Any], **_generator: Any) -> dict[str, Any]:
    """Every field of an answer is always there; unknown is null. Titles are labels of forms, which no answer has."""
    for name, component in result["components"]["schemas"].items():
        if name.endswith("Request") or "properties" not in component:
            continue
        component["required"] = list(component["properties"])
        for field in component["properties"].values():
            field.pop("title", None)
            field.pop("readOnly", None)
    return result


def _refusal(code: int) -> OpenApiResponse:
    description, error, detail, field = REFUSALS[code]
    example = OpenApiExample(error, value={"error": error, "detail": detail, "field": field})
    return OpenApiResponse(ProblemSerializer, description=description, examples=[example])
