"""Providers' own SDKs: optional, heavy, and imported when an account of theirs is first used, never at start."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

from fleet.providers.base import InstanceState, ProviderInstance
from fleet.providers.errors import Invalid, NotFound, WrongState
from fleet.providers.http import SilentError


def sdk(label: str, module: str, *requirements: str) -> Any:
    """The SDK's module. Raises Invalid with the command that installs it where it is not there."""
    try:
        return importlib.import_module(module)
    except ImportError:
        quoted = " ".join(f'"{requirement}"' for requirement in requirements)
        raise Invalid(
            f"{label}'s SDK is not installed here. The operator of this installation adds it by: "
            f".venv/bin/python -m pip install {quoted}"
        ) from None


def read_again(read: Callable[[], Any]) -> Any:
    """What `read` gives; tried a second time when nobody answered. Only for what changes nothing."""
    try:
        return read()
    except SilentError:
        return read()


def unless_so(
    act: Callable[[], object], read: Callable[[], ProviderInstance | None], *so: InstanceState
) -> ProviderInstance | None:
    """Acts. Raises WrongState as `act` does, but for a machine that is in a state of `so` already: it is given back. None: it was done."""
    try:
        act()
    except WrongState:
        machine = read()
        if machine is None:
            raise NotFound("The machine does not exist any more.") from None
        if machine.state not in so:
            raise
        return machine
    return None
