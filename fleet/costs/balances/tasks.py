"""Background work of balances. Reading them is of `fleet.inventory.provider_word`."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from fleet.costs.balances import judging
from fleet.costs.balances.keeping import prune_balances


@shared_task(name="costs.judge_balances")
def judge_balances() -> int:
    return judging.judge_balances(now=timezone.now())


@shared_task(name="costs.prune_balances")
def prune() -> int:
    return prune_balances(now=timezone.now())
