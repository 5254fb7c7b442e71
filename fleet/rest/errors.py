"""One shape for every refusal of the API: {"error": code, "detail": what is wrong and what to do, "field": where or null}.

Agents are refused in the same shape (docs/agent-protocol.md).
"""

from __future__ import annotations

import logging
from typing import Any

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.core.signals import got_request_exception
from django.utils.translation import gettext as _
from rest_framework import serializers, status
from rest_framework.exceptions import ErrorDetail, ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback

from fleet.rest.problems import NamedProblem

logger = logging.getLogger("django.request")


class ProblemSerializer(serializers.Serializer[dict[str, Any]]):
    error = serializers.CharField(help_text="A code for programs; see docs/api.md for the list.")
    detail = serializers.CharField(help_text="What is wrong and what to do, for people, in the language asked for.")
    field = serializers.CharField(
        allow_null=True, help_text="The parameter or field that is wrong; null where it is none."
    )


def answer_error(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler; what DRF does not know becomes a logged 500 in the same shape."""
    if isinstance(error, BadRequest | SuspiciousOperation):
        error = ValidationError(_("The request cannot be read: shorten its address and parameters."))
    response = exception_handler(error, context)
    if response is None:
        return _unexpected(error, context)
    code, detail, field = _first_problem(error, response)
    response.data = {"error": code, "detail": detail, "field": field}
    return response


def _unexpected(error: Exception, context: dict[str, Any]) -> Response:
    request = context["request"]._request  # noqa: SLF001 - Django's request, which its signal and log are about
    set_rollback()
    # As Django does it for its own views, so that loggers, reporters and the test client hear of it.
    got_request_exception.send(sender=None, request=request)
    logger.error("Internal Server Error: %s", request.path, exc_info=error, extra={"request": request})
    detail = _("Something went wrong here; it is in the server's log.")
    return Response(
        {"error": "server_error", "detail": detail, "field": None}, status=status.HTTP_500_INTERNAL_SERVER_ERROR
    )


def _first_problem(error: Exception, response: Response) -> tuple[str, str, str | None]:
    """Code, text and field. A validation error may name several fields: the first is told."""
    if isinstance(error, ValidationError):
        field, detail = _first_leaf(error.detail)
        return "invalid", str(detail), field
    detail = response.data.get("detail", "")
    code = getattr(detail, "code", None)
    field = error.field if isinstance(error, NamedProblem) else None
    return code or "error", str(detail), field


def _first_leaf(detail: Any, field: str | None = None) -> tuple[str | None, ErrorDetail]:
    while not isinstance(detail, str):
        if isinstance(detail, dict):
            name, detail = next(iter(detail.items()))
            field = field if name == "non_field_errors" else f"{field}.{name}" if field else str(name)
        else:
            detail = detail[0]
    assert isinstance(detail, ErrorDetail)
    return field, detail
