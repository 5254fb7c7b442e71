"""What drf-spectacular cannot see: the refusals that every operation shares."""

from __future__ import annotations

from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse

from fleet.rest.errors import ProblemSerializer

JSON = "application/json"
READS = {"GET", "HEAD"}
KEY_PARAMETER = OpenApiParameter(
    "Idempotency-Key",
    location=OpenApiParameter.HEADER,
    description="Made up by you, new for each write. Sent again with the same write, it is answered the same and nothing happens twice.",
)
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
# Those of writes with an Idempotency-Key.
KEY_REFUSALS: dict[int, tuple[str, str, str, str | None]] = {
    409: (
        "The first request with this Idempotency-Key is still being answered.",
        "in_progress",
        "The first request with this key is still being answered; send it again in a moment.",
        "Idempotency-Key",
    ),
    422: (
        "The Idempotency-Key was used for another write.",
        "idempotency_key_reused",
        "This key was used for another write; take a new one for each.",
        "Idempotency-Key",
    ),
}


class Schema(AutoSchema):
    def get_override_parameters(self) -> list[Any]:
        shared = getattr(self.view, "shared_parameters", ()) if self._is_list_view() else ()
        key = [KEY_PARAMETER] if self._writes else []
        return [*super().get_override_parameters(), *shared, *key]

    @property
    def _writes(self) -> bool:
        return self.method not in READS and not getattr(self.view, "changes_nothing", False)

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
        known = REFUSALS | KEY_REFUSALS if self._writes else REFUSALS
        refusals = {code: _refusal(*words) for code, words in known.items() if code not in answers}
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


def _refusal(description: str, error: str, detail: str, field: str | None) -> OpenApiResponse:
    example = OpenApiExample(error, value={"error": error, "detail": detail, "field": field})
    return OpenApiResponse(ProblemSerializer, description=description, examples=[example])
