"""What an adapter may raise. Nothing else crosses the seam.

ProviderError
├── AuthFailed          the key is wrong or revoked
├── ScopeMissing        the key is right, the permission is missing
├── NotFound
├── WrongState          the machine is in a state that forbids this
├── NoCapacity
├── QuotaOrFunds
├── RateLimited         retry_after: seconds, where the provider says
├── Invalid             the provider refused what we sent
│   └── InvalidOption   a field of the account form cannot be used, known before any call
├── Unavailable         time-out, 5xx, an answer that is not what the API promises
└── PartialCreate       an error came back, but a machine exists: ref
"""

from __future__ import annotations

from math import isfinite

from fleet.providers.base import Ref

LONGEST_PAUSE_SECONDS = 86_400.0


class ProviderError(Exception):
    """`detail` is shown to people: it never holds a credential."""

    kind = "error"

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail)
        self.detail = detail


class AuthFailed(ProviderError):
    kind = "auth_failed"


class ScopeMissing(ProviderError):
    kind = "scope_missing"


class NotFound(ProviderError):
    kind = "not_found"


class WrongState(ProviderError):
    kind = "wrong_state"


class NoCapacity(ProviderError):
    kind = "no_capacity"


class QuotaOrFunds(ProviderError):
    kind = "quota_or_funds"


class RateLimited(ProviderError):
    kind = "rate_limited"

    def __init__(self, detail: str = "", retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after = sensible(retry_after)


def sensible(seconds: float | None) -> float | None:
    """None for what is no pause; a provider may send anything."""
    if seconds is None or not isfinite(seconds) or seconds < 0:
        return None
    return min(seconds, LONGEST_PAUSE_SECONDS)


class Invalid(ProviderError):
    kind = "invalid"


class InvalidOption(Invalid):
    """`message` is an English message id with %(name)s places, filled from `params` after translation."""

    def __init__(self, field: str, message: str, **params: str) -> None:
        super().__init__(message % params)
        self.field, self.message, self.params = field, message, params


class Unavailable(ProviderError):
    kind = "unavailable"


class PartialCreate(ProviderError):
    kind = "partial_create"

    def __init__(self, detail: str, ref: Ref) -> None:
        super().__init__(detail)
        self.ref = ref
