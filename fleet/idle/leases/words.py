"""Why the end of a machine is planned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from fleet.idle.leases.ends import DELETE, LEASE, MAX_AGE

Values = Mapping[str, Any]


def lease_words(_values: Values) -> str:
    return _("it may run until then, and nobody has extended that")


def age_words(values: Values) -> str:
    hours = ngettext("%(n)d hour", "%(n)d hours", values["hours"]) % {"n": values["hours"]}
    said = {"policy": values["policy"], "hours": hours}
    return _("the policy “%(policy)s” lets no machine run longer than %(hours)s without a person's word") % said


def delete_words(values: Values) -> str:
    """It says the loss: people read this before the machine is gone."""
    days = ngettext("%(n)d day", "%(n)d days", values["days"]) % {"n": values["days"]}
    said = {"policy": values["policy"], "days": days}
    text = _(
        "it has been stopped for %(days)s; by the policy “%(policy)s” it is deleted, with its disks and all that is on them, for good"
    )
    return text % said


WORDS: Mapping[str, Callable[[Values], str]] = {LEASE: lease_words, MAX_AGE: age_words, DELETE: delete_words}
