"""Machines that a person types: a desk-side server, a provider without an API. There is nothing to poll; what was typed is the listing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from fleet.providers.base import (
    AccountInfo,
    Billing,
    Capability,
    Ending,
    Field,
    InstanceState,
    StopSemantics,
    gettext_noop,
)
from fleet.providers.registry import register

# The three states a person can vouch for, and what each costs.
BILLING: Mapping[str, Billing] = {
    InstanceState.RUNNING: Billing.FULL,
    InstanceState.STOPPED: Billing.STORAGE,
    InstanceState.TERMINATED: Billing.NONE,
}


def billing_of(state: str) -> Billing:
    return BILLING.get(state, Billing.UNKNOWN)


@register
class Manual:
    kind: ClassVar[str] = "manual"
    label: ClassVar[str] = gettext_noop("Typed by hand")
    fields: ClassVar[tuple[Field, ...]] = ()
    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    create_is_idempotent: ClassVar[bool] = False
    rule_version: ClassVar[int] = 1
    endings: ClassVar[tuple[Ending, ...]] = ()
    semantics: ClassVar[StopSemantics] = StopSemantics(can_stop=False)

    def __init__(self, options: Mapping[str, str]) -> None:
        pass

    def verify(self) -> AccountInfo:
        return AccountInfo()
