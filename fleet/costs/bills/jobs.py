"""Sends the work that follows from a bill once it is committed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from celery import current_app
from django.db import transaction

from fleet.inventory.models import ProviderAccount

COMPARE = "costs.compare_bills"


def compare_later(account: ProviderAccount, months: Iterable[date]) -> None:
    """By name: the task's module is above this one."""
    for month in sorted(set(months)):
        arguments = (account.pk, month.isoformat())
        transaction.on_commit(lambda sent=arguments: current_app.send_task(COMPARE, sent), robust=True)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
