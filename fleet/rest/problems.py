"""Refusals that DRF has no word for. Apart from errors.py, because permissions are loaded before DRF's views are."""

from __future__ import annotations

from rest_framework import status
from rest_framework.exceptions import APIException


class NamedProblem(APIException):
    """A refusal with a code and a status of its own; mostly about one parameter."""

    def __init__(self, detail: str, *, code: str, status_code: int, field: str | None) -> None:
        super().__init__(detail, code)
        self.status_code = status_code
        self.field = field


def not_found(field: str, detail: str) -> NamedProblem:
    return NamedProblem(detail, code="not_found", status_code=status.HTTP_404_NOT_FOUND, field=field)
