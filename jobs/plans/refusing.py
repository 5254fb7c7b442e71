"""What must be so before a job of a plan is begun. Raises JobRefused with the field that has to be changed."""

from __future__ import annotations

from collections.abc import Sequence

from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from fleet.inventory.models import Instance
from jobs.book.order import JobRefused, Order
from jobs.plans.commands import asked_for


def refuse_plan(order: Order, machines: Sequence[Instance]) -> None:
    """Of an order without a plan nothing is asked."""
    if not order.launcher:
        return
    wanted = int(order.predicted.get("machines") or 1)
    if len(machines) != wanted:
        text = ngettext(
            "The plan is for %(n)d machine: choose as many.", "The plan is for %(n)d machines: choose as many.", wanted
        )
        raise JobRefused("machines", text % {"n": wanted})
    given = {**order.environment, **order.secrets}
    files = [dict(file) for file in order.files]
    for asked in asked_for(order.command, files, installs=order.installs):
        if not given.get(asked.name, "").strip():
            said = {"name": asked.name, "what": asked.what}
            raise JobRefused("environment", _("%(name)s has no value: %(what)s.") % said)
