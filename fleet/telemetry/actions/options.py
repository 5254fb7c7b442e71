"""What each action of an agent can be told beside its name: whole numbers within limits, and yes or no. Nothing else is ever sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import gettext_lazy as _

from fleet.telemetry.actions.models import AgentActionName


class ActionError(ValueError):
    """What was asked cannot be asked of this machine; the text is for the person who asked."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A number from `least` to `most`."""

    least: int
    most: int

    def takes(self, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and self.least <= value <= self.most


@dataclass(frozen=True, slots=True)
class YesOrNo:
    def takes(self, value: object) -> bool:
        return isinstance(value, bool)


# The agent's own limits are the same or narrower: it believes nothing of it.
OPTIONS: dict[str, dict[str, Whole | YesOrNo]] = {
    AgentActionName.PRE_STOP: {"timeout_seconds": Whole(5, 3_600)},
    AgentActionName.ACCEPT: {"most_seconds": Whole(20, 300), "when_busy": YesOrNo()},
}


def checked_options(name: str, options: Mapping[str, object]) -> dict[str, object]:
    """Raises ActionError, naming the option."""
    if name not in OPTIONS:
        raise ActionError(_("There is no action “%(name)s”.") % {"name": name})
    for option, value in options.items():
        rule = OPTIONS[name].get(option)
        if rule is None or not rule.takes(value):
            raise ActionError(_("Option “%(option)s” is not known or out of its range.") % {"option": option})
    return dict(options)
