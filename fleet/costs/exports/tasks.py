from __future__ import annotations

from celery import shared_task

from fleet.costs.exports.counting import count_costs


@shared_task(name="costs.count")
def count() -> int:
    return count_costs()
