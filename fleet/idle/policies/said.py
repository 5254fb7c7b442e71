"""A policy as a person says it: which machines, what idle means, what is done and when not, and how old machines get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time
from typing import Any

from fleet.idle.policies.models import IdleAction, IdlePolicy, IdleWindowFrom, UseMode
from fleet.inventory.models import ProviderAccount
from fleet.teams.models import Project

SCOPE = ("project", "account", "provider", "tenancy", "label_name", "label_value", "excluded")
# What history's recommendation was reckoned for: another one is of another policy.
LEARNED_FOR = (*SCOPE, "mode", "limits", "window_from", "wrong_stop_gpu_hours", "restart_minutes")
# What can make it stop more, sooner or at other hours than was agreed to.
RISKY = (*LEARNED_FOR, "enabled", "window_minutes", "action", "grace_minutes", "accept_loss", "stop_without_hook", "hook_minutes", "office_days", "office_from", "office_until", "time_zone", "holidays")  # fmt: skip

# Names that the audit log has other words for.
AUDITED = {"enabled": "switched_on", "action": "then", "mode": "used_as"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySaid:
    """The columns of IdlePolicy that people fill. `excluded`: ids of machines. `limits`: as JSON keeps them, see thresholds.py."""

    name: str
    enabled: bool = True
    project: Project | None = None
    account: ProviderAccount | None = None
    provider: str = ""
    tenancy: str = ""
    label_name: str = ""
    label_value: str = ""
    excluded: frozenset[int] = frozenset()
    mode: str = UseMode.INTERACTIVE
    window_from: str = IdleWindowFrom.FIXED
    window_minutes: int = 60
    wrong_stop_gpu_hours: float | None = None
    restart_minutes: int = 20
    limits: Mapping[str, float] = field(default_factory=dict)
    action: str = IdleAction.ALERT
    grace_minutes: int = 30
    warn_minutes: tuple[int, ...] = ()
    accept_loss: bool = False
    stop_without_hook: bool = False
    hook_minutes: int = 10
    office_days: tuple[int, ...] = ()
    office_from: time | None = None
    office_until: time | None = None
    time_zone: str = ""
    holidays: str = ""
    max_age_hours: int | None = None
    delete_after_days: int | None = None

    @classmethod
    def of(cls, policy: IdlePolicy) -> PolicySaid:
        listed = {name: tuple(getattr(policy, name)) for name in ("warn_minutes", "office_days")}
        excluded = frozenset(policy.excluded.values_list("pk", flat=True)) if policy.pk else frozenset()
        plain = {name: getattr(policy, name) for name in cls.__slots__ if name != "excluded"}
        return cls(**{**plain, **listed, "excluded": excluded})

    def columns(self) -> dict[str, Any]:
        """Without `excluded`, which is rows of its own."""
        columns = {name: getattr(self, name) for name in self.__slots__ if name != "excluded"}
        return {**columns, "warn_minutes": sorted(self.warn_minutes, reverse=True), "office_days": sorted(self.office_days), "limits": dict(self.limits)}  # fmt: skip

    @property
    def acts(self) -> bool:
        return self.action != IdleAction.ALERT

    def differs(self, other: PolicySaid, names: tuple[str, ...]) -> bool:
        return any(getattr(self, name) != getattr(other, name) for name in names)

    def needs_word(self, before: PolicySaid | None) -> bool:
        """Whether somebody has to say that they know what it does: it is to stop machines, and not as was agreed to."""
        return self.acts and self.enabled and (before is None or self.differs(before, RISKY))

    def plain(self) -> dict[str, Any]:
        """JSON-ready, as the audit log keeps it: what is not empty."""
        values = {AUDITED.get(name, name): _plain(getattr(self, name)) for name in self.__slots__}
        return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | frozenset):
        return sorted(value)
    if isinstance(value, time):
        return f"{value:%H:%M}"
    if isinstance(value, Mapping):
        return dict(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)
