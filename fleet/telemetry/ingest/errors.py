"""What a request can be refused with. Each error is one row of "Refusals" in docs/agent-protocol.md."""

from __future__ import annotations


class RefusalError(Exception):
    """Answered as {"error": code, "detail": …, "field": …}. `retry_after`: seconds, for those that pass by themselves."""

    status = 400
    code = "bad_request"
    retry_after: int | None = None

    def __init__(self, detail: str, *, field: str = "") -> None:
        super().__init__(detail)
        self.detail, self.field = detail, field


class BadBodyError(RefusalError):
    status, code = 400, "bad_json"


class BadTokenError(RefusalError):
    status, code = 401, "bad_token"


class NotFoundError(RefusalError):
    status, code = 404, "not_found"


class WrongMethodError(RefusalError):
    status, code = 405, "method_not_allowed"


class TakenError(RefusalError):
    status, code = 409, "taken"


class TooLargeError(RefusalError):
    status, code = 413, "too_large"


class InvalidBodyError(RefusalError):
    status, code = 422, "invalid"


class BusyError(RefusalError):
    status, code, retry_after = 429, "busy", 5


class UnavailableError(RefusalError):
    status, code, retry_after = 503, "unavailable", 5
