"""One NVML call, of which nothing gets out but a value or a reason."""

from __future__ import annotations

import pynvml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LIBRARY_NOT_FOUND = 12
DRIVER_NOT_LOADED = 9
LIBRARY_MISMATCH = 18
GPU_IS_LOST = 15
RESET_REQUIRED = 16
TIMEOUT = 10
NOT_FOUND = 6
NO_PERMISSION = 4

_REASONS = {
    1: "uninitialized",
    2: "invalid_argument",
    3: "not_supported",
    NO_PERMISSION: "no_permission",
    NOT_FOUND: "not_found",
    7: "insufficient_size",
    DRIVER_NOT_LOADED: "driver_not_loaded",
    TIMEOUT: "timeout",
    LIBRARY_NOT_FOUND: "library_not_found",
    13: "function_not_found",
    GPU_IS_LOST: "gpu_is_lost",
    RESET_REQUIRED: "reset_required",
    LIBRARY_MISMATCH: "driver_library_mismatch",
    25: "version_not_supported",
    999: "unknown_error",
}
# These do not change while a driver is loaded: such a call is asked again only now and then
LASTING = frozenset({"not_supported", "function_not_found", "version_not_supported", "invalid_argument"})


class UnavailableError(Exception):
    """A value could not be read. ``code`` is NVML's, or None where the binding itself failed."""

    def __init__(self, reason: str, code: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


def call(function: str, *arguments: object) -> Any:
    """Call a pynvml function. Raises UnavailableError for whatever goes wrong in it.

    Not only NVMLError: text that is no UTF-8, a version mismatch and a missing name come as exceptions of other families,
    and an argument that ctypes refuses as yet another. One value must not cost the others.
    """
    try:
        return getattr(pynvml, function)(*arguments)
    except pynvml.NVMLError as error:
        raise UnavailableError(_REASONS.get(error.value, f"nvml_error_{error.value}"), error.value) from error
    except UnicodeDecodeError as error:
        raise UnavailableError("undecodable") from error
    except Exception as error:  # see the docstring
        raise UnavailableError(f"binding_{type(error).__name__}") from error


def call_text(function: str, *arguments: object) -> str:
    """Call a pynvml function that returns text, taking its bytes before pynvml decodes them strictly.

    Raises UnavailableError, with reason ``undecodable`` where the bytes are no UTF-8: another codec would only make them
    look like text.
    """
    raw = _bytes_of(getattr(pynvml, function, None), function, arguments)
    text = raw if isinstance(raw, str) else bytes(raw).decode("utf-8", "replace")
    if not text or "\ufffd" in text or not text.isprintable():
        raise UnavailableError("undecodable")
    return text


def _bytes_of(decorated: Callable[..., object] | None, function: str, arguments: tuple[object, ...]) -> bytes | str:
    undecorated = getattr(decorated, "__wrapped__", None)
    try:
        value = undecorated(*arguments) if undecorated is not None else call(function, *arguments)
    except pynvml.NVMLError as error:
        raise UnavailableError(_REASONS.get(error.value, f"nvml_error_{error.value}"), error.value) from error
    if not isinstance(value, (bytes, str)):
        raise UnavailableError("undecodable")
    return value


def reason_for(code: int) -> str:
    return _REASONS.get(code, f"nvml_error_{code}")
