"""From botocore's errors to ours. No text of theirs is chained: a traceback must not carry a signed request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from fleet.providers.errors import (
    AuthFailed,
    Invalid,
    NoCapacity,
    NotFound,
    ProviderError,
    QuotaOrFunds,
    RateLimited,
    ScopeMissing,
    Unavailable,
    WrongState,
)
from fleet.providers.redact import redact

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

NO_INSTANCE = "InvalidInstanceID.NotFound"
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
CODES: Mapping[str, type[ProviderError]] = {
    "AuthFailure": AuthFailed,
    "InvalidClientTokenId": AuthFailed,
    "SignatureDoesNotMatch": AuthFailed,
    "UnrecognizedClientException": AuthFailed,
    "ExpiredToken": AuthFailed,
    "RequestExpired": AuthFailed,
    "MissingAuthenticationToken": AuthFailed,
    "Blocked": AuthFailed,
    "PendingVerification": AuthFailed,
    "OptInRequired": ScopeMissing,
    "UnauthorizedOperation": ScopeMissing,
    "AccessDenied": ScopeMissing,
    "AccessDeniedException": ScopeMissing,
    "IncorrectInstanceState": WrongState,
    "IncorrectState": WrongState,
    "IncorrectSpotRequestState": WrongState,
    "OperationNotPermitted": WrongState,
    "UnsupportedOperation": WrongState,
    "InsufficientInstanceCapacity": NoCapacity,
    "InsufficientHostCapacity": NoCapacity,
    "SpotMaxPriceTooLow": NoCapacity,
    "InstanceLimitExceeded": QuotaOrFunds,
    "VcpuLimitExceeded": QuotaOrFunds,
    "MaxSpotInstanceCountExceeded": QuotaOrFunds,
    "RequestLimitExceeded": RateLimited,
    "Throttling": RateLimited,
    "ThrottlingException": RateLimited,
    "EC2ThrottledException": RateLimited,
}


@contextmanager
def provider_errors(region: str = "", *, secrets: Iterable[str] = ()) -> Iterator[None]:
    """Turns what botocore raises into ours; `region` stands before the text, which has none of `secrets`."""
    from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError
    from botocore.parsers import ResponseParserError

    try:
        yield
    except ClientError as error:
        raise of_answer(error, region, secrets) from None
    except ParamValidationError as error:
        raise Invalid(where(region, redact(" ".join(str(error).split()), secrets))) from None
    except BotoCoreError as error:
        # Their texts name the endpoint and nothing of the request.
        raise Unavailable(where(region, str(error))) from None
    except ResponseParserError:
        # Its text has the whole answer, and it is no BotoCoreError.
        raise Unavailable(where(region, "An answer that is not EC2's: no XML, or a part of it.")) from None
    except (LookupError, TypeError, ValueError) as error:
        raise Unavailable(where(region, f"An answer that EC2 does not promise: {type(error).__name__}.")) from None


def of_answer(error: ClientError, region: str, secrets: Iterable[str]) -> ProviderError:
    """The error for an answer with an error code, or with a status alone."""
    code, status = code_of(error), error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    message = redact(str(error.response.get("Error", {}).get("Message", "")), secrets)
    detail = where(region, f"{code}: {message}")
    kind = CODES.get(code) or of_status(status, code)
    return RateLimited(detail, retry_after_of(error)) if kind is RateLimited else kind(detail)


def of_status(status: int, code: str) -> type[ProviderError]:
    if status >= 500 or not status:
        return Unavailable
    if status == 429:
        return RateLimited
    return NotFound if code.endswith((".NotFound", "NotFoundException")) else Invalid


def lacks_permission(error: ClientError) -> bool:
    return CODES.get(code_of(error)) is ScopeMissing


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def retry_after_of(error: ClientError) -> float | None:
    return seconds(error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("retry-after", ""))


def seconds(header: str) -> float | None:
    return float(header) if header.isdigit() else None


def say_slow_down(response_dict: Mapping[str, Any], **_event: object) -> None:
    """For botocore's before-parse: a 429 in plain text comes from what stands before EC2, and botocore would only say that it is no XML."""
    if response_dict["status_code"] == 429 and b"<Error" not in response_dict["body"]:
        raise RateLimited("Too many requests.", seconds(response_dict["headers"].get("retry-after", "")))


def where(region: str, text: str) -> str:
    return f"{region}: {text}" if region else text
